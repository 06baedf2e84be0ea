// Split requests: plans one, lets the user edit it, follows it while it runs, and sends what the user wants of it.

import { base, fill, make, part, request } from "./api.js";
import { openDialog, shownIn } from "./dialogs.js";

const RUNNING_MS = 400;
const IDLE_MS = 2000;
const live = document.getElementById("split");
const dialog = document.getElementById("dialog");
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

export async function plan(wanted) {
  const made = await request("POST", "/splits", wanted);
  location.assign(`${base}/splits/${made.split.session_id}`);
}

async function command(id, fields) {
  await request("POST", `/splits/${id}/commands`, fields);
  await follow();
}

async function settle(id, conflict, fields) {
  await request("POST", `/splits/${id}/conflicts/${conflict}`, fields);
  await follow();
}

// Put the plan as `changed` makes it of what it is now in its place.
async function change(id, changed) {
  const { plan } = await request("GET", `/splits/${id}`);
  await request("PUT", `/splits/${id}/plan`, { ...plan, ...changed(plan) }).finally(follow);
}

const NUMBERS = ["parallel", "tries", "usd", "tokens", "subtask_usd", "subtask_tokens"];
const lines = (text) => text.split("\n").map((each) => each.trim()).filter(Boolean);
const words = (text) => text.split(/\s+/).filter(Boolean);

function limits(form) {
  const values = NUMBERS.map((name) => [name, form.elements[name].value]);
  return Object.fromEntries(values.map(([name, value]) => [name, value === "" ? null : Number(value)]));
}

function saved(form, subtask) {
  const { instruction, files, writes, constraints, depends_on, model_class, needs, priority } = form.elements;
  return {
    ...subtask,
    instruction: instruction.value,
    files: lines(files.value),
    writes: lines(writes.value),
    constraints: lines(constraints.value),
    depends_on: words(depends_on.value),
    model_class: model_class.value,
    needs: needs.value,
    priority: Number(priority.value),
  };
}

// The dialog stays open where the server refuses what was given.
const sent = (form, action) =>
  shownIn(form.querySelector(".problem"), async () => {
    await action(form.dataset);
    dialog.close();
  });

export const clicks = {
  "split-command": ({ dataset: { id, action, subtask } }) =>
    command(id, { action, subtask_ids: subtask ? [subtask] : [] }),
  "split-settle": ({ dataset: { id, conflict, by } }) => settle(id, conflict, { by }),
  async "split-edit"({ dataset: { path, title } }) {
    const holder = make("div");
    fill(holder, await part(`/splits/${path}`));
    openDialog(title, holder.firstElementChild);
    dialog.querySelector("textarea, input").focus();
  },
  "split-move": ({ dataset: { id, subtask, by } }) =>
    change(id, ({ subtasks }) => {
      const at = subtasks.findIndex((each) => each.id === subtask);
      subtasks.splice(Math.max(0, at + Number(by)), 0, ...subtasks.splice(at, 1));
      return { subtasks };
    }),
  "split-remove": ({ dataset: { id, subtask } }) =>
    change(id, ({ subtasks }) => ({
      subtasks: subtasks
        .filter((each) => each.id !== subtask)
        .map((each) => ({ ...each, depends_on: each.depends_on.filter((name) => name !== subtask) })),
    })),
};

export const changes = {
  "split-strategy": (input) => change(input.dataset.id, () => ({ strategy: input.value })),
};

export const submits = {
  "split-plan": (form) =>
    plan({
      task: form.task.value,
      files: words(form.files.value),
      granularity: form.granularity.value || null,
      strategy: form.strategy.value,
      run_on: form.run_on.value || null,
      limits: limits(form),
    }),
  "split-limits": (form) =>
    sent(form, ({ id, planned }) =>
      planned
        ? change(id, () => ({ limits: limits(form) }))
        : command(id, { action: "resume", limits: limits(form) }),
    ),
  "split-save": (form) =>
    sent(form, ({ id, subtask }) =>
      change(id, ({ subtasks }) => ({
        subtasks: subtasks.map((each) => (each.id === subtask ? saved(form, each) : each)),
      })),
    ),
  "split-text": (form) => sent(form, ({ id, conflict }) => settle(id, conflict, { by: "text", text: form.text.value })),
};

export function start() {
  if (live) follow();
}
