// The task assistant: what the user says becomes an answer, a question with chips, or changes to choose from.

import { Problem, api, base, element, guarded, make, part, request } from "./api.js";
import { watchQuestions } from "./feed.js";
import { applyAgreed, newKey, say, sure, undo, whenUndone } from "./tasks.js";

const STAGES = {
  routing: "Reading your message…",
  proposing: "Looking at your tasks…",
  validating: "Checking the changes…",
  repairing: "Correcting the changes…",
  summarizing: "Putting it into words…",
};
const VERBS = {
  create: "Add",
  update: "Change",
  bulk_update: "Change",
  delete: "Delete",
  bulk_delete: "Delete",
  complete: "Complete",
  bulk_complete: "Complete",
  complete_occurrence: "Complete",
};
const FIELDS = { title: "title", notes: "notes", scheduled_for: "date", time: "time", priority: "priority" };
const MAX_TURNS = 20;
const SHOWN_TARGETS = 5;
const REMEMBERED = `handrail:tasks:${base}`;
const talk = document.getElementById("task-talk");
const sheet = document.getElementById("task-sheet");
const input = document.getElementById("task-message");
let session = "";
let running = null; // the answer that is coming

function add(...parts) {
  sheet.hidden = false;
  talk.append(...parts);
  while (talk.children.length > MAX_TURNS * 2) talk.firstElementChild.remove();
  toLastMessage();
}

// An answer is read from its beginning.
function toLastMessage() {
  talk.scrollTop = talk.lastElementChild.previousElementSibling.offsetTop;
}

// Asking

async function ask(message, { mode = "auto", clarify, shown = message } = {}) {
  await follow({ message, mode, clarify, session, request_id: newKey() }, shown);
}

// The answer to a request; to one that was sent before, the same answer, and nothing is started.
async function follow(asked, shown) {
  running?.stop();
  const turn = new Turn();
  sessionStorage.setItem(REMEMBERED, JSON.stringify({ asked, shown }));
  add(make("p", { class: "user-words" }, shown), turn.element);
  running = turn;
  setBusy(true);
  try {
    await turn.follow(asked);
  } finally {
    if (running === turn) {
      running = null;
      setBusy(false);
    }
  }
}

// A reload shows the last answer again, until the user has decided about it.
function forget() {
  sessionStorage.removeItem(REMEMBERED);
}

function setBusy(busy) {
  document.querySelector("[data-act=task-stop]").hidden = !busy;
}

const bold = (words) => words.split(/\*\*([^*\n]+)\*\*/).map((each, at) => (at % 2 ? make("strong", {}, each) : each));

// One message and what comes of it.
class Turn {
  constructor() {
    this.stage = make("span", {}, STAGES.routing);
    this.clock = make("span", { "aria-hidden": "true" });
    this.working = make("p", { class: "working" }, this.stage, this.clock);
    const began = performance.now();
    const tick = () => (this.clock.textContent = `${Math.round((performance.now() - began) / 1000)} s`);
    this.ticking = setInterval(tick, 1000);
    this.attempts = 0;
    this.words = make("div", { class: "answer-words" });
    this.element = make("div", { class: "turn-of-tasks" }, this.working);
    this.proposal = null;
    this.stopped = false;
  }

  // The stream; where the browser cannot have it, the whole answer at once.
  async follow(asked) {
    this.asked = asked;
    try {
      await this.stream(asked);
    } catch (cut) {
      if (this.stopped) return;
      await this.whole(asked);
    }
  }

  stream(asked) {
    const { clarify, ...fields } = asked;
    const query = new URLSearchParams({ ...fields, ...(clarify ? { clarify: JSON.stringify(clarify) } : {}) });
    if (!asked.session) query.delete("session");
    return new Promise((resolve, reject) => {
      this.source = new EventSource(`${api}/assistant/message/stream?${query}`);
      const on = (name, handle) =>
        this.source.addEventListener(name, (event) => {
          handle(JSON.parse(event.data));
          if (running === this) toLastMessage();
        });
      on("stage", ({ stage }) => this.show(STAGES[stage] || STAGES.proposing));
      on("clarify", (found) => this.clarify(found));
      on("ops", ({ operations }) => this.operations(operations));
      on("summary", ({ text }) => this.text(text));
      on("result", (found) => this.result(found));
      on("done", () => {
        this.end();
        resolve();
      });
      this.stop = () => {
        this.stopped = true;
        forget();
        this.text("Stopped. Nothing was changed.");
        this.end();
        resolve();
      };
      // An error of the connection has no data: the browser tries again by itself, unless it was refused.
      this.source.addEventListener("error", (event) => {
        if (event.data !== undefined) this.failed(JSON.parse(event.data));
        else if (this.source.readyState === EventSource.CLOSED) reject(new Error("no stream"));
        else this.show(`Connection lost. Trying again, attempt ${++this.attempts}.`);
      });
    });
  }

  async whole({ message, mode, clarify, session: known, request_id }) {
    const body = { message, request_id, options: { mode, ...(clarify ? { clarify } : {}) } };
    try {
      const found = await request("POST", "/assistant/message", known ? { ...body, session: known } : body);
      if (found.requiresClarification) this.clarify(found);
      else this.result(found);
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      this.failed({ detail: problem.message, advice: problem.advice });
    } finally {
      this.end();
    }
  }

  end() {
    this.source?.close();
    clearInterval(this.ticking);
    this.working.remove();
    if (!this.element.children.length) this.text("There is nothing to change.");
  }

  show(words) {
    this.stage.textContent = words;
  }

  text(words) {
    const parts = words.split(/^\*\*([^*\n]+)\*\*$/m); // every second one is a heading
    this.words.replaceChildren(
      ...parts.map((each, at) =>
        at % 2 ? make("strong", { class: "heading" }, each) : make("span", {}, ...bold(each.trim().replace(/^- /gm, "• "))),
      ),
    );
    if (parts.length > 1) this.proposal?.withoutTitle();
    if (words) this.element.prepend(this.words);
  }

  result(found) {
    session = found.session || session;
    if (found.operations?.length) this.operations(found.operations);
    this.text(found.text);
    this.proposal?.settle();
    say(found.text);
  }

  failed({ detail, advice = "" }) {
    forget();
    const words = `${detail || "The assistant did not answer."} ${advice}`.trim();
    const again = make("button", { type: "button", class: "small" }, "Try again");
    again.addEventListener("click", () => {
      again.remove();
      guarded(() => ask(this.asked.message, this.asked));
    });
    this.element.append(make("div", { class: "banner bad" }, make("span", {}, words), again));
    say(words);
  }

  operations(found) {
    if (this.proposal) this.proposal.replace(found);
    else {
      this.proposal = new Proposal(found, this.asked.request_id);
      this.element.append(this.proposal.element);
      watchQuestions(this.element);
    }
  }

  // The chosen chip stays; the others can no longer be chosen.
  clarify({ question, options, session: known }) {
    session = known || session;
    this.text(question);
    const chips = options.map((option) => {
      const chip = make("button", { type: "button", class: "chip" }, option.title);
      chip.addEventListener("click", () => {
        for (const each of chips) each.disabled = true;
        chip.classList.add("chosen");
        guarded(() => this.choose(question, option));
      });
      return chip;
    });
    this.element.append(make("div", { class: "chips" }, ...chips));
    say(question);
  }

  choose(question, option) {
    const shown = option.title;
    const ids = /^\d+$/.test(option.id) ? [option.id] : [];
    const date = option.scheduled_for || "";
    if (ids.length || date)
      return ask(this.asked.message, { clarify: { question, selection: { ids, date, priority: "" } }, shown });
    if (["tasks", "chat"].includes(option.id)) return ask(this.asked.message, { mode: option.id, shown });
    return ask(option.title);
  }
}

// Changes to choose from

const keyOf = ({ op }) => `${op.op} ${op.id || op.title || JSON.stringify(op.where)}`;
const piece = (tag, name, ...words) => make(tag, name ? { class: name } : {}, ...words);

class Proposal {
  constructor(results, key) {
    this.results = results;
    this.key = key; // an apply that is sent again, also after a reload, applies nothing twice
    this.list = make("ul", { class: "operations" });
    this.head = make("header", { class: "card-head" }, piece("strong", "", "Proposed changes"));
    this.foot = make("footer", { class: "ask", "data-question": true });
    this.apply = make("button", { type: "button", class: "primary", "data-key": "y" });
    this.apply.addEventListener("click", () => guarded(() => this.agree()));
    this.nothing = make("button", { type: "button", "data-key": "n" }, "Change nothing", make("kbd", {}, "n"));
    this.nothing.addEventListener("click", () => this.close("Nothing was changed."));
    this.foot.append(this.apply, this.nothing);
    const attributes = { class: "card proposal waiting", "data-card": true };
    this.element = make("section", attributes, this.head, this.list, this.foot);
    this.settled = false;
    this.closed = false;
    this.list.addEventListener("change", () => this.count());
    this.replace(results);
  }

  boxes() {
    return [...this.list.querySelectorAll("input")];
  }

  // A newer version keeps what the user has unticked.
  replace(results) {
    const off = new Set(this.boxes().flatMap((box, at) => (box.checked || box.disabled ? [] : [keyOf(this.results[at])])));
    this.results = results;
    this.list.replaceChildren(...results.map((each) => operationRow(each, each.valid && !off.has(keyOf(each)))));
    this.count();
  }

  chosen() {
    return this.boxes().flatMap((box, at) => (box.checked ? [this.results[at]] : []));
  }

  // The words above it say what it is.
  withoutTitle() {
    this.head.remove();
  }

  // Nothing can be applied before the proposal is complete.
  settle() {
    this.settled = true;
    this.count();
  }

  count() {
    const [all, chosen] = [this.results.filter((each) => each.valid).length, this.chosen().length];
    const words = chosen === all ? (all === 1 ? "Apply" : `Apply all ${all}`) : `Apply ${chosen} of ${all}`;
    const open = all > 0 && !this.closed;
    this.foot.hidden = !all; // there is nothing to decide
    this.foot.toggleAttribute("data-question", open);
    this.element.classList.toggle("waiting", open);
    this.apply.replaceChildren(words, make("kbd", {}, "y"));
    this.apply.disabled = !chosen || !this.settled;
    this.nothing.disabled = !this.settled;
  }

  async agree() {
    const operations = this.chosen().map(({ op, seen }) => ({ op, seen }));
    this.apply.disabled = true;
    try {
      const { warnings } = await request("POST", "/llm/dryrun", { operations });
      if (warnings.length && !(await sure(warnings))) return;
      const done = await applyAgreed(operations, this.key);
      const back = make("button", { type: "button", class: "small" }, "Undo");
      back.addEventListener("click", () => guarded(() => undo(done.report.change_id)));
      whenUndone(done.report.change_id, () => this.close("Undone."));
      this.close(`Applied. ${done.words}`, back);
    } finally {
      this.count();
    }
  }

  close(words, ...buttons) {
    forget();
    this.closed = true;
    delete this.foot.dataset.question;
    for (const box of this.boxes()) box.disabled = true;
    this.element.classList.remove("waiting");
    this.foot.className = "";
    this.foot.replaceChildren(piece("span", "", words), ...buttons);
    say(words);
  }
}

let boxes = 0;

function operationRow(result, ticked) {
  const id = `operation-${++boxes}`;
  const box = make("input", { type: "checkbox", id, disabled: !result.valid });
  box.checked = ticked;
  const label = make("label", { for: id }, ...title(result));
  const below = [
    ...(result.valid ? differences(result) : result.errors.map((each) => piece("div", "below t-bad", each))),
    ...(result.missing.length ? [piece("div", "below t-wait", `Still missing: ${result.missing.join(", ")}`)] : []),
    ...(result.valid && result.op.where ? [targets(result)] : []),
  ];
  return make("li", { class: `operation${result.valid ? "" : " invalid"}` }, box, label, ...below);
}

// All tasks of a bulk operation; the first ones, until more are wanted.
function targets({ op, count }) {
  const holder = make("div", { class: "below" });
  guarded(async () => {
    const query = new URLSearchParams({ op: JSON.stringify(op) });
    const list = element(`<ul class="targets">${await part(`/tasks/targets?${query}`)}</ul>`);
    const more = [...list.children].slice(SHOWN_TARGETS);
    for (const each of more) each.hidden = true;
    holder.append(list);
    if (!more.length) return;
    const button = make("button", { type: "button", class: "small" }, `Show ${more.length.toLocaleString("en")} more`);
    button.addEventListener("click", () => {
      for (const each of more) each.hidden = false;
      button.remove();
    });
    holder.append(button);
    if (count > list.children.length) holder.append(` ${count.toLocaleString("en")} in all`);
  });
  return holder;
}

const titleInList = (id) => id && document.querySelector(`[data-task="${Number(id)}"] .title`)?.textContent;

function title({ op, before, after, count, kind, valid, text }) {
  const verb = VERBS[op.op];
  if (!verb) return [text];
  const named = after?.title || before?.title || op.title || titleInList(op.id);
  const many = count === 1 ? "1 task" : count ? `${count.toLocaleString("en")} tasks` : "tasks";
  const words = named ? `“${named}”` : op.id ? `task ${op.id}` : many;
  const found = [piece("span", `verb ${verb.toLowerCase()}`, verb), ` ${words}`];
  if (op.op === "create" && valid) found.push(piece("span", "kind", kind));
  return found;
}

const never = "none";

function day(text) {
  if (!text) return never;
  const style = { weekday: "short", day: "numeric", month: "short", year: "numeric", timeZone: "UTC" };
  return new Date(`${text}T12:00:00Z`).toLocaleDateString("en-GB", style);
}

function repeats(task) {
  const { type, days, until } = task.recurrence;
  if (type === "none") return never;
  return `${type === "every_n_days" ? `every ${days} days` : type}${until ? ` until ${day(until)}` : ""}`;
}

const repeating = (task, name) => name === "scheduled_for" && task.recurrence.type !== "none" && "repeats from";
const valueOf = (task, name) => (name === "scheduled_for" ? day(task[name]) : task[name] || never);

// What a bulk update sets.
function settings(op, row) {
  const found = Object.entries(FIELDS).filter(([name]) => name in op);
  const rows = found.map(([name, words]) => row(words, null, valueOf(op, name)));
  if (op.recurrence) rows.push(row("repeats", null, repeats(op)));
  if ("completed" in op) rows.push(row("done", null, op.completed ? "yes" : "no"));
  return rows;
}

// What would be different, field by field; of a new task, what is set.
function differences({ op, before, after }) {
  const row = (name, old, now) =>
    piece("div", "below", `${name}: `, ...(old === null ? [] : [piece("del", "", old), " → "]), piece("ins", "", now));
  if (op.where) return op.op === "bulk_update" ? settings(op, row) : [];
  if (op.op === "complete_occurrence" && after) {
    const done = new Set(before.completed_occurrences);
    const days = after.completed_occurrences.filter((each) => !done.has(each));
    return days.map((each) => piece("div", "below", `for ${day(each)}`));
  }
  if (!after || op.op === "complete") return [];
  const found = Object.entries(FIELDS)
    .filter(([name]) => (before ? before[name] !== after[name] : name !== "title" && after[name]))
    .map(([name, words]) => row(repeating(after, name) || words, before && valueOf(before, name), valueOf(after, name)));
  if (before && before.completed !== after.completed) found.push(row("done", "yes", "no"));
  const [old, now] = [before ? repeats(before) : never, repeats(after)];
  if (old !== now) found.push(row("repeats", before && old, now));
  return found;
}

// The page

async function send() {
  const message = input.value.trim();
  if (!message) return;
  input.value = "";
  await ask(message);
}

export const clicks = {
  "task-example"(button) {
    input.value = button.dataset.text;
    input.focus();
  },
  "task-stop": () => running?.stop(),
  "task-talk-close"() {
    running?.stop();
    forget();
    sheet.hidden = true;
    talk.replaceChildren();
    input.focus();
  },
};

export const submits = { "task-ask": send };

export function start() {
  if (!input) return;
  const before = JSON.parse(sessionStorage.getItem(REMEMBERED) || "null");
  if (before) guarded(() => follow(before.asked, before.shown));
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    guarded(send);
  });
}
