// Split requests: plans one, follows one while it runs, and sends what the user wants of it.

import { base, fill, part, request } from "./api.js";

const RUNNING_MS = 400;
const IDLE_MS = 2000;
const live = document.getElementById("split");
let shown = "";
let timer = 0;

async function follow() {
  if (document.visibilityState === "visible") await part(`/splits/${live.dataset.id}/part`).then(show, () => undefined);
  clearTimeout(timer);
  timer = setTimeout(follow, live.querySelector(".verdict.run") ? RUNNING_MS : IDLE_MS);
}

function show(html) {
  // What the keyboard is on stays under it.
  if (html === shown) return;
  const focused = document.activeElement?.getAttribute("aria-label");
  fill(live, html);
  if (focused) live.querySelector(`[aria-label="${CSS.escape(focused)}"]`)?.focus();
  shown = html;
  const said = document.getElementById("split-said");
  const words = live.querySelector(".verdict strong")?.textContent || "";
  if (said.textContent !== words) said.textContent = words;
}

export async function plan(task, files) {
  const made = await request("POST", "/splits", { task, files });
  location.assign(`${base}/splits/${made.split.session_id}`);
}

export const clicks = {
  async "split-command"(button) {
    const { id, action, subtask } = button.dataset;
    await request("POST", `/splits/${id}/commands`, { action, subtask_ids: subtask ? [subtask] : [] });
    await follow();
  },
  async "split-settle"(button) {
    const { id, conflict, by } = button.dataset;
    await request("POST", `/splits/${id}/conflicts/${conflict}`, { by });
    await follow();
  },
};

export const submits = {
  "split-plan": (form) => plan(form.task.value, form.files.value.split(/\s+/).filter(Boolean)),
};

export function start() {
  if (live) follow();
}
