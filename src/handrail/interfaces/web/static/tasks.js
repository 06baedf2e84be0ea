// The place of tasks: the list and the week, and what a click, a key or a form does to a task.

import { Problem, base, fill, guarded, make, part, request, toast } from "./api.js";
import { openDialog, shownIn } from "./dialogs.js";
import { openMenu } from "./menu.js";

const POLL_MS = 3000;
const TYPING_MS = 150;
const live = document.getElementById("tasks");
const search = document.getElementById("task-search");
const dialog = document.getElementById("dialog");
let rows = {}; // {group: how many of its rows are shown}
let asked = 0; // only the latest answer is shown

// What is shown is in the address: back, forward and reload show the same.
function query(more = {}) {
  const here = new URLSearchParams(location.search);
  const counts = Object.entries(rows).map(([name, count]) => `${name}:${count}`);
  const given = { view: here.get("view"), day: here.get("day"), q: here.get("q"), rows: counts.join(",") };
  return new URLSearchParams(Object.entries({ ...given, ...more }).filter(([, value]) => value || value === 0));
}

function show(changes, { replace = false } = {}) {
  const here = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value) here.set(name, value);
    else here.delete(name);
  }
  rows = {};
  const address = here.size ? `?${here}` : location.pathname;
  history[replace ? "replaceState" : "pushState"](null, "", address);
  return refresh();
}

const today = () => document.getElementById("tasks-known").dataset.today;
const known = () => document.getElementById("tasks-known").dataset.known;

function later(days) {
  const day = new Date(`${today()}T12:00:00Z`);
  day.setUTCDate(day.getUTCDate() + days);
  return day.toISOString().slice(0, 10);
}

// Where the focus is in the list: the same control, else the one that took its place.
function focusPlace() {
  const at = document.activeElement;
  if (!at || !live.contains(at)) return null;
  const { act, id, day } = at.dataset;
  const same = () => [...live.querySelectorAll(`[data-act="${act}"]`)];
  const number = same().indexOf(at);
  return () => {
    const now = same();
    const found = now.find((each) => each.dataset.id === id && each.dataset.day === day && act !== "task-tick");
    (found || now[Math.min(number, now.length - 1)])?.focus({ preventScroll: true });
  };
}

// The list as it is now; tasks in `fresh` are pointed out.
export async function refresh(fresh = []) {
  const number = ++asked;
  const html = await part(`/tasks/part?${query()}`);
  if (number !== asked) return;
  put(html);
  const shown = fresh.flatMap((id) => [...live.querySelectorAll(`[data-task="${Number(id)}"]`)]);
  for (const row of shown) row.classList.add("fresh");
  if (fresh.length === 1) shown[0]?.scrollIntoView({ block: "nearest" });
}

function put(html) {
  const open = new Map([...live.querySelectorAll("details")].map((each) => [each.dataset.id, each.open]));
  const focus = focusPlace();
  fill(live, html);
  for (const each of live.querySelectorAll("details")) each.open = open.get(each.dataset.id) ?? each.open;
  focus?.();
}

// Changes by the assistant in a conversation, by terminals and by other pages; also a new day.
async function poll() {
  const busy = document.hidden || dialog.open || document.querySelector(".menu");
  const number = asked;
  const html = busy ? "" : await part(`/tasks/part?${query({ known: known() })}`).catch(() => "");
  if (html && number === asked) put(html);
  setTimeout(poll, POLL_MS);
}

export function say(words) {
  document.getElementById("tasks-said").textContent = words;
}

// Changes

export function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((each) => each.toString(16).padStart(2, "0")).join("");
}

const countOf = (count) => `${count.toLocaleString("en")} ${count === 1 ? "task" : "tasks"}`;

// Apply operations that the user asked for, all or none, and offer to undo them. Many are asked about a second time.
async function change(operations) {
  const wanted = await request("POST", "/llm/dryrun", { operations });
  const wrong = wanted.results.flatMap((each) => each.errors);
  if (wrong.length) throw new Problem(wrong.join(" "));
  if (wanted.warnings.length && !(await sure(wanted.warnings))) return;
  await apply(operations);
}

async function apply(operations, words = "") {
  const { report, words: counted } = await applyAgreed(operations);
  const said = words || counted;
  toast(said, { action: () => undo(report.change_id), label: "Undo", seconds: 10 });
  say(said);
}

// Apply what the user has agreed to; a lost answer is asked for once more, which applies nothing twice.
export async function applyAgreed(operations, key = newKey()) {
  const send = () => request("POST", "/llm/apply", { operations }, { "Idempotency-Key": key });
  const report = await send().catch((problem) => (problem.code ? Promise.reject(problem) : send()));
  await refresh(report.results.flatMap((each) => each.ids));
  return { report, words: applied(report.summary) };
}

const PAST = { created: "added", updated: "changed", completed: "completed", deleted: "deleted" };

function applied(summary) {
  const parts = Object.entries(PAST).filter(([name]) => summary[name]);
  const words = parts.map(([name, verb]) => `${verb} ${countOf(summary[name])}`).join(", ");
  return words ? `${words[0].toUpperCase()}${words.slice(1)}.` : "Nothing was changed.";
}

const undoing = {}; // {change: what to do once it is undone, by whichever button}

export function whenUndone(change_id, then) {
  undoing[change_id] = then;
}

export async function undo(change_id) {
  const undone = await request("POST", "/tasks/undo", { change_id });
  undoing[change_id]?.();
  await refresh(undone.changes.map((each) => each.id));
  const words = `Undone: ${countOf(undone.changes.length)} as before.`;
  toast(words, { seconds: 4 });
  say(words);
}

// The second question about many tasks.
export function sure(warnings) {
  return new Promise((resolve) => {
    const yes = make("button", { type: "button", class: "primary" }, "Yes, I am sure");
    const no = make("button", { type: "button", "data-act": "dialog-close" }, "Cancel");
    yes.addEventListener("click", () => {
      resolve(true);
      dialog.close();
    });
    dialog.addEventListener("close", () => resolve(false), { once: true });
    openDialog(
      "Are you sure?",
      ...warnings.map((each) => make("p", { class: "warning" }, each)),
      make("p", { class: "soft" }, "It can be undone afterwards."),
      make("div", { class: "buttons" }, yes, no),
    );
    no.focus();
  });
}

// Forms

const recurrence = (values) =>
  values.repeat === "none"
    ? "none"
    : {
        type: values.repeat,
        ...(values.repeat === "every_n_days" ? { days: Number(values.days) } : {}),
        ...(values.until ? { until: values.until } : {}),
      };

async function add(form) {
  const { repeat, ...fields } = Object.fromEntries(new FormData(form));
  if (repeat !== "none") {
    fields.recurrence = recurrence({ repeat });
    fields.scheduled_for ||= today();
  }
  const given = Object.fromEntries(Object.entries(fields).filter(([, value]) => value));
  await apply([{ op: "create", ...given }], `Added “${fields.title.trim()}”.`);
  form.reset();
  form.elements.title.focus();
}

async function edit(id) {
  const holder = make("div");
  fill(holder, await part(`/tasks/${id}/form`));
  const form = holder.firstElementChild;
  openDialog("Task", form);
  const follow = () => (form.dataset.repeat = form.repeat.value);
  form.repeat.addEventListener("change", follow);
  follow();
  form.started = Object.fromEntries(new FormData(form));
  form.elements.title.focus();
}

async function save(form) {
  const values = Object.fromEntries(new FormData(form));
  const differs = (name) => values[name] !== form.started[name];
  const changed = ["title", "notes", "scheduled_for", "time", "priority"].filter(differs);
  const fields = Object.fromEntries(changed.map((name) => [name, values[name]]));
  if (["repeat", "days", "until"].some(differs)) fields.recurrence = recurrence(values);
  await shownIn(form.querySelector(".problem"), async () => {
    if (Object.keys(fields).length)
      await apply([{ op: "update", id: form.dataset.id, ...fields }], `Changed “${values.title.trim()}”.`);
    dialog.close();
  });
}

async function tick(button) {
  const { id, day, done } = button.dataset;
  const title = button.getAttribute("aria-label").replace(/^\w+ /, "");
  const op = done !== undefined ? "reopen" : day ? "complete_occurrence" : "complete";
  button.closest(".task").classList.add("leaving");
  try {
    await apply([{ op, id, ...(day ? { date: day } : {}) }], done !== undefined ? `Open again: ${title}.` : `Done: ${title}.`);
  } finally {
    button.closest(".task")?.classList.remove("leaving");
  }
}

const move = (id, title, day) =>
  apply([{ op: "update", id, scheduled_for: day }], `Moved “${title}” to ${day === today() ? "today" : day}.`);

function menu(button) {
  const { id, title } = button.dataset;
  const fixed = button.dataset.repeats !== undefined || button.dataset.done !== undefined;
  const monday = 8 - (new Date(`${today()}T12:00:00Z`).getUTCDay() || 7);
  const moves = {
    "Move to today": () => move(id, title, today()),
    "Move to tomorrow": () => move(id, title, later(1)),
    "Move to next Monday": () => move(id, title, later(monday)),
  };
  openMenu(button, `Actions for ${title}`, {
    Edit: () => edit(id),
    ...(fixed ? {} : moves),
    "Add to a checklist": () => promote(id, title, "checklist"),
    "Make it an intent": () => promote(id, title, "intent"),
    "Build it with Handrail": () => build(id),
    Delete: () => remove(id, title),
  });
}

// A task becomes part of the work on the files.
function promote(id, title, kind) {
  const field = (name, label, value) =>
    make("label", { class: "field" }, make("span", {}, label), make("input", { name, value, required: true }));
  const fields = {
    checklist: [field("checklist", "Checklist in Markdown", "CHECKLIST.md")],
    intent: [field("intent", "Id of the intent", `TASK-${id}`), field("scope", "Files it owns", "src/**")],
  }[kind];
  const problem = make("p", { class: "t-bad problem", role: "alert" });
  const button = make("button", { type: "submit", class: "primary" }, "Add");
  const form = make("form", { class: "task-form" }, ...fields, problem, make("div", { class: "buttons" }, button));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const { scope, ...given } = Object.fromEntries(new FormData(form));
    const body = scope ? { ...given, scope: scope.split(/[\s,]+/).filter(Boolean) } : given;
    await shownIn(problem, async () => {
      await request("POST", `/tasks/${id}/promote`, body);
      dialog.close();
      toast(`Added “${title}” to ${given.checklist || `the intents as ${given.intent}`}.`);
    });
  });
  openDialog(kind === "intent" ? "Make it an intent" : "Add to a checklist", form);
  form.querySelector("input").select();
}

async function build(id) {
  const made = await request("POST", `/tasks/${id}/build`, {});
  location.assign(`${base}/s/${made.session}`);
}

const remove = (id, title) => apply([{ op: "delete", id }], `Deleted “${title}”.`);

export const clicks = {
  "task-tick": tick,
  "task-edit": (button) => edit(button.dataset.id),
  "task-menu": menu,
  async "task-delete"(button) {
    dialog.close();
    await remove(button.dataset.id, button.closest("form").dataset.title);
  },
  "task-view": (button) => show({ view: button.dataset.id === "week" ? "week" : "", day: "", q: "" }).then(clearSearch),
  "task-week": (button) => show({ view: "week", day: button.dataset.id }),
  "task-undo": (button) => undo(button.dataset.id),
  async "task-more"(button) {
    const { id, at } = button.dataset;
    const row = button.closest("li");
    const holder = make("ul");
    fill(holder, await part(`/tasks/rows?${query({ group: id, from: at })}`));
    rows[id] = Number(at) + holder.querySelectorAll(".task").length;
    const first = holder.querySelector(".open-task");
    row.replaceWith(...holder.children);
    first?.focus({ preventScroll: true });
  },
  "task-add-on"(button) {
    const form = document.getElementById("quick-add");
    form.scheduled_for.value = button.dataset.id;
    form.elements.title.focus();
  },
  "task-overdue": () =>
    change([
      {
        op: "bulk_update",
        where: { scheduled_range: ["", later(-1)], completed: false, repeating: false },
        scheduled_for: today(),
      },
    ]),
  "task-clear": () => change([{ op: "bulk_delete", where: { completed: true } }]),
};

export const submits = { "task-add": add, "task-save": save };

function clearSearch() {
  search.value = "";
}

export function start() {
  if (!live) return;
  let typing = 0;
  search.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => guarded(() => show({ q: search.value.trim() }, { replace: true })), TYPING_MS);
  });
  addEventListener("popstate", () => {
    search.value = new URLSearchParams(location.search).get("q") || "";
    rows = {};
    guarded(refresh);
  });
  setTimeout(poll, POLL_MS);
}
