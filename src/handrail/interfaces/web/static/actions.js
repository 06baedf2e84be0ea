// What buttons and forms of the page do: each names its action in `data-act`.

import { api, base, command, fill, guarded, json, make, part, request, session, toast } from "./api.js";
import * as checks from "./checks.js";
import * as splits from "./splits.js";
import { attachFiles, fillComposer, focusMessage, mention } from "./composer.js";
import { confirmed, openDialog, rewindDialog } from "./dialogs.js";
import { refresh, refreshSessions, showTab, state, tick, toEnd } from "./feed.js";
import { openMenu } from "./menu.js";
import { editPlan, followPlan } from "./plan.js";
import * as settings from "./settings.js";
import * as assistant from "./task_assistant.js";
import * as tasks from "./tasks.js";

function remember(name, value) {
  document.cookie = `handrail_${name}=${value}; path=/; max-age=31536000; samesite=strict`;
}

async function copy(text) {
  await navigator.clipboard.writeText(text);
  toast("Copied.", { seconds: 2 });
}

function busy(button) {
  for (const each of button.closest("footer, .card, form, .banner")?.querySelectorAll("button") || [button])
    each.disabled = true;
}

// A decision can fail, for instance because another page has answered: then the buttons work again.
async function decide(button, type, fields) {
  busy(button);
  try {
    await command(type, fields);
  } catch (problem) {
    for (const each of button.closest("footer, .card, form, .banner")?.querySelectorAll("button") || [])
      each.disabled = false;
    throw problem;
  }
}

const clicks = {
  approve: (button) =>
    decide(button, "answer_approval", { approval_id: button.dataset.id, decision: button.dataset.decision }),
  reject(button) {
    const form = button.closest("footer").querySelector(".reason");
    form.hidden = false;
    form.querySelector("input").focus();
  },
  "reject-back"(button) {
    button.closest("form").hidden = true;
    button.closest("[data-card]").focus();
  },
  answer: (button) =>
    decide(button, "answer_question", { question_id: button.dataset.id, answer: button.dataset.text }),
  choose: (button) => decide(button, "send_message", { text: button.dataset.text, seen: state.seq }),
  fill: (button) => fillComposer(button.dataset.text),
  resume: (button) => decide(button, "send_message", { text: `/${button.dataset.how}`, resume: button.dataset.how }),
  "run-command": (button) => decide(button, "run_command", { command: button.dataset.command }),
  "run-all"(button) {
    const all = [...button.closest(".card").querySelectorAll("[data-command]")].map((each) => each.dataset.command);
    return decide(button, "run_all", { commands: all });
  },
  undo: (button) => rewindDialog({ to: button.dataset.change, only: true }),
  rewind: (button) => rewindDialog({ to: button.dataset.change }),
  "rewind-message": (button) => rewindDialog({ to: button.dataset.message }),
  redo: () => rewindDialog({ redo: true }),
  "rewind-confirm": (button) => confirmed(button),
  copy: (button) => copy(button.closest(".code").querySelector("pre").innerText),
  "copy-path": (button) => copy(button.dataset.path),
  "close-panel": (button) => (button.closest(".card").hidden = true),
  async earlier(button) {
    const scroller = document.getElementById("scroller");
    const log = document.getElementById("log");
    const height = scroller.scrollHeight;
    const found = await json(`/s/${session}/earlier?before=${state.start}`);
    const holder = make("div");
    fill(holder, found.html);
    log.prepend(...holder.children);
    state.start = found.start;
    if (!found.start) button.closest("#earlier").remove();
    scroller.scrollTop += scroller.scrollHeight - height;
    tick();
  },
  tab: (button) => showTab(button.dataset.id),
  drawer(button) {
    const drawer = document.getElementById(button.dataset.id);
    const opened = drawer.classList.toggle("open");
    button.setAttribute("aria-expanded", String(opened));
    if (opened) drawer.querySelector("a, button, input")?.focus();
  },
  "close-drawers": closeDrawers,
  "session-menu": sessionMenu,
  async "approve-plan"(button) {
    await decide(button, "approve_plan", { plan_id: button.dataset.id });
    await followPlan();
  },
  "edit-plan": () => editPlan(),
  "todo-done": (button) => command("complete_todo", { todo_id: button.dataset.id }),
  stop: () => command("cancel"),
  mention,
  attach: () => document.getElementById("file").click(),
  "to-end": toEnd,
  "dialog-close": () => document.getElementById("dialog").close(),
  theme(button) {
    const name = button.dataset.id;
    if (name) document.documentElement.dataset.theme = name;
    else delete document.documentElement.dataset.theme;
    remember("theme", name);
    for (const each of document.querySelectorAll("[data-act=theme]"))
      each.setAttribute("aria-pressed", String(each === button));
  },
  "diff-view"(button) {
    const view = button.dataset.id;
    if (view) document.documentElement.dataset.diff = view;
    else delete document.documentElement.dataset.diff;
    remember("diff", view);
    for (const each of document.querySelectorAll("[data-act=diff-view]"))
      each.setAttribute("aria-pressed", String(each === button));
  },
  async notifications(button) {
    const answer = await Notification.requestPermission();
    button.textContent = answer === "granted" ? "Notifications are on" : "Your browser does not allow them";
  },
  import: () => document.getElementById("import").click(),
  ...checks.clicks,
  ...splits.clicks,
  ...settings.clicks,
  ...tasks.clicks,
  ...assistant.clicks,
};

const changes = {
  mode: (select) => (session ? command("set_mode", { mode: select.value }) : undefined),
  route: (select) => (session ? command("set_route", { route: select.value }) : undefined),
  workspace: (select) => location.assign(`/w/${select.value}/`),
  filter: (select) => select.form.submit(),
  "status-filter": refreshSessions,
  async "import-file"(input) {
    const made = await request("POST", "/sessions/import", input.files[0]);
    location.assign(`${base}/s/${made.id}`);
  },
  ...settings.changes,
  ...splits.changes,
};

const submits = {
  "reject-form": (form) =>
    decide(form.querySelector("button"), "answer_approval", {
      approval_id: form.dataset.id,
      decision: "reject",
      note: form.note.value,
    }),
  "answer-form"(form) {
    if (form.answer.value.trim())
      return decide(form.querySelector("button"), "answer_question", {
        question_id: form.dataset.id,
        answer: form.answer.value,
      });
    return undefined;
  },
  async "secret-form"(form) {
    const secret = form.secret.value;
    form.secret.value = "";
    if (secret) await request("POST", `/sessions/${session}/questions/${form.dataset.id}/secret`, { value: secret });
  },
  ...settings.submits,
  ...splits.submits,
  ...tasks.submits,
  ...assistant.submits,
};

export function closeDrawers() {
  for (const each of document.querySelectorAll(".side.open, .inspector.open")) each.classList.remove("open");
  for (const each of document.querySelectorAll(".drawer-button")) each.setAttribute("aria-expanded", "false");
}

function sessionMenu(button) {
  const { id, title } = button.dataset;
  const deleted = button.dataset.deleted !== undefined;
  const items = {
    Rename: () => renameSession(id, title),
    Labels: () => labelSession(id, title, button.dataset.labels),
    ...statusItems(id, button.dataset.status),
    Fork: () => forkSession(id),
    Export: () => exportSession(id),
    ...(deleted ? { Restore: () => restore(id) } : { Delete: () => deleteSession(id, title) }),
  };
  openMenu(button, `Actions for ${title}`, items);
}

const STATUSES = { open: "Reopen", in_progress: "Mark as in progress", done: "Mark as done", archived: "Archive" };

function statusItems(id, now) {
  const others = Object.entries(STATUSES).filter(([status]) => status !== now);
  return Object.fromEntries(
    others.map(([status, words]) => [
      words,
      async () => {
        await request("PATCH", `/sessions/${id}`, { status });
        await refreshSessions();
      },
    ]),
  );
}

// A form with one field in the dialog.
function askFor(title, label, value, store) {
  const input = make("input", { name: "value", id: "new-value", maxlength: "200", value });
  const field = make("div", { class: "field" }, make("label", { for: "new-value" }, label), input);
  const form = make("form", {}, field, make("button", { type: "submit", class: "primary" }, "Store"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    document.getElementById("dialog").close();
    guarded(async () => {
      await store(input.value.trim());
      await refreshSessions();
    });
  });
  openDialog(title, form);
  input.select();
}

function labelSession(id, title, labels) {
  const before = labels.split(" ").filter(Boolean);
  askFor(`Labels of ${title}`, "Labels, with blanks between", labels, (text) => {
    const wanted = text.split(/[\s,]+/).filter(Boolean);
    const add = wanted.filter((each) => !before.includes(each));
    const remove = before.filter((each) => !wanted.includes(each));
    return command("change_labels", { add, remove }, id);
  });
}

export function renameSession(id, title) {
  askFor("Rename the session", "Title", title, async (text) => {
    await request("PATCH", `/sessions/${id}`, { title: text });
    if (id === session) refresh(["head"]);
  });
}

export async function forkSession(id) {
  const made = await request("POST", `/sessions/${id}/fork`, {});
  location.assign(`${base}/s/${made.id}`);
}

export function exportSession(id) {
  make("a", { href: `${api}/sessions/${id}/export`, download: `${id}.handrail` }).click();
}

async function restore(id) {
  await request("POST", `/sessions/${id}/restore`);
  await refreshSessions();
}

export async function deleteSession(id, title) {
  await request("DELETE", `/sessions/${id}`);
  await refreshSessions();
  toast(`“${title}” is deleted.`, { action: () => restore(id), label: "Undo", seconds: 15 });
}

function act(table, event, target) {
  const action = target && table[target.dataset.act];
  if (!action) return;
  if (event.type === "submit") event.preventDefault();
  guarded(() => action(target, event));
}

export function start() {
  document.addEventListener("click", (event) => {
    const target = event.target.closest("button[data-act]");
    act(clicks, event, target);
  });
  // Links to places of this session get their address here, before the browser follows, opens or copies it.
  for (const kind of ["click", "auxclick", "contextmenu"])
    document.addEventListener(kind, (event) => {
      const link = event.target.closest("a[data-place]");
      if (!link || !session) return;
      const place = link.dataset.place;
      link.href = `${base}/${place === "audit" ? `audit?session=${session}` : `s/${session}/${place}`}`;
    });
  document.addEventListener("change", (event) =>
    act(changes, event, event.target.closest("select[data-act], input[data-act]")),
  );
  document.addEventListener("submit", (event) => act(submits, event, event.target.closest("form[data-act]")));
  document
    .getElementById("file")
    ?.addEventListener("change", (event) => guarded(() => attachFiles(event.target.files)));
  document.querySelector(".tabs")?.addEventListener("keydown", (event) => {
    const tabs = [...event.currentTarget.children];
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = tabs[(tabs.indexOf(document.activeElement) + step + tabs.length) % tabs.length];
    next.focus();
    guarded(() => showTab(next.dataset.id));
  });
}
