// The session's plan: edit, approve, follow.

import { Problem, command, make, request, session } from "./api.js";
import { openDialog } from "./dialogs.js";

const drafts = {};

export const followPlan = () => command("send_message", { text: "Follow the plan.", route: "follow" });

const save = (plan_id, text) => request("PUT", `/sessions/${session}/plan`, { plan_id, text });

// Approves the plan that is shown, which may not be the latest one.
export function approvePlan() {
  const button = [...document.querySelectorAll("[data-act=approve-plan]")].pop();
  if (!button) throw new Problem("No plan here waits for approval.", "/plan follow goes on with an approved one.");
  button.click();
}

// Takes the text as the plan; without one, opens the plan that is there. A text that is not saved comes back.
export async function editPlan(text = "") {
  const plan = await request("GET", `/sessions/${session}/plan`);
  if (text) return save(plan.plan_id, text);
  const area = make("textarea", { id: "plan-text", class: "plan-text", rows: "16", spellcheck: "false" });
  area.value = drafts[plan.plan_id] ?? plan.text;
  area.addEventListener("input", () => (drafts[plan.plan_id] = area.value));
  const problem = make("p", { class: "t-bad", role: "alert" });
  const hint = "Lines with files: and check: below a step are optional. The edited plan has to be approved.";
  const form = make(
    "form",
    {},
    make("label", { for: "plan-text" }, "An objective, then numbered steps"),
    area,
    make("p", { class: "soft" }, hint),
    problem,
    make("div", { class: "buttons" }, make("button", { type: "submit", class: "primary" }, "Save")),
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    problem.textContent = "";
    try {
      await save(plan.plan_id, area.value);
    } catch (refused) {
      if (!(refused instanceof Problem)) throw refused;
      problem.textContent = `${refused.message} ${refused.advice}`.trim();
      return;
    }
    delete drafts[plan.plan_id];
    document.getElementById("dialog").close();
  });
  openDialog("Edit the plan", form);
  area.focus();
  return undefined;
}
