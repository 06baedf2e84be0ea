// Slash commands of the composer.

import { base, command, request, session, toast, Problem } from "./api.js";
import { exportSession, forkSession, renameSession } from "./actions.js";
import { findDialog, helpDialog, rewindDialog } from "./dialogs.js";
import { showTab } from "./feed.js";
import { approvePlan, editPlan, followPlan } from "./plan.js";
import * as splits from "./splits.js";

const go = (path) => location.assign(`${base}/${path}`);

async function tab(name) {
  document.getElementById("inspector").classList.add("open");
  await showTab(name);
}

function required(text, usage) {
  if (!text) throw new Problem(`Say ${usage}.`);
  return text;
}

// What was chosen from the completion of mentions on this page, other than agents.
export const picked = new Set();

export const chosenIn = (text) =>
  [...picked].filter((each) => text.includes(`@${each}`) || text.includes(`@"${each}"`));

// A message with a route of its own; the first one starts a session.
async function say(text, route, mode) {
  const id = session || (await request("POST", "/sessions", { mode })).id;
  if (session && mode) await command("set_mode", { mode });
  await command("send_message", { text, route, chosen: chosenIn(text) }, id);
  if (!session) go(`s/${id}`);
}

function plan(text) {
  const [, verb, rest] = /^(\S*)\s*([\s\S]*)$/.exec(text);
  if (session && verb === "edit") return editPlan(rest);
  if (session && text === "approve") return approvePlan();
  if (session && text === "follow") return followPlan();
  return say(required(text, "/plan TASK"), "plan-mode", "plan");
}

const setStatus = (status) => request("PATCH", `/sessions/${session}`, { status });

async function verify(text) {
  const words = text.split(/\s+/).filter(Boolean);
  const only = words.filter((each) => each !== "changed");
  await request("POST", "/checks/run", { only, changed: words.includes("changed") });
  go("checks");
}

function changeLabels(text) {
  const words = required(text, "/label NAME, or /label -NAME").split(/\s+/);
  const remove = words.filter((each) => each.startsWith("-")).map((each) => each.slice(1));
  const add = words.filter((each) => !each.startsWith("-"));
  return command("change_labels", { add, remove });
}

export const SLASH = {
  help: { help: "keys and commands", run: helpDialog },
  mode: {
    takes: "MODE",
    help: "what may be done without asking",
    run: (text) => command("set_mode", { mode: required(text, "/mode ask") }),
  },
  model: {
    takes: "NAME",
    help: "which model answers",
    run: (text) => (text ? command("set_model", { model: text }) : go("settings#model")),
  },
  route: {
    takes: "ROUTE",
    help: "where messages go: auto, agent, chat, or an agent's name",
    run: (text) => command("set_route", { route: required(text, "/route auto") }),
  },
  plan: {
    takes: "TASK|VERB",
    help: "make a plan for it first; or edit, approve, follow the one there is",
    run: plan,
  },
  build: {
    takes: "TASK",
    help: "do it in a copy; kept only if the checks agree",
    run: (text) => say(required(text, "/build TASK"), "build"),
  },
  split: {
    takes: "TASK",
    help: "do it in parallel subtasks, merged and applied as one",
    run: (text) => splits.plan({ task: required(text, "/split TASK") }),
  },
  verify: { takes: "[NAME|changed]", help: "run the project's own checks", run: verify },
  init: {
    help: "write a first AGENTS.md, or add what is missing in it",
    run: () => say("Write a first AGENTS.md for this repository, or add what is missing in it.", "init"),
  },
  auto: {
    takes: "on|off",
    help: "whether a request in steps continues by itself",
    run: (text) => command("set_auto_continue", { on: required(text, "/auto on or /auto off") === "on" }),
  },
  changes: {
    takes: "[N]",
    help: "what this session changed, or change N in full",
    run: (text) => (text ? go(`s/${session}/changes/${encodeURIComponent(text)}`) : tab("changes")),
  },
  diff: { help: "what the changes of this session add up to now", run: () => go(`s/${session}/diff`) },
  undo: {
    takes: "[N]",
    help: "undo the last change, or only change N",
    run: (text) => rewindDialog({ to: text, only: true }),
  },
  rewind: {
    takes: "N",
    help: "go back to before change N",
    run: (text) => rewindDialog({ to: required(text, "/rewind N") }),
  },
  redo: { help: "undo the last undo or rewind", run: () => rewindDialog({ redo: true }) },
  intent: {
    takes: "[ID]",
    help: "the intent that changes belong to; none clears it",
    run: (text) => (text ? command("select_intent", { intent_id: text === "none" ? "" : text }) : go("intents")),
  },
  run: { takes: "N|all", help: "run the commands of the last answer", run: runSuggested },
  next: { takes: "[N]", help: "fill in a next step of the last answer", run: nextStep },
  find: {
    takes: "WORDS",
    help: "find words in this conversation, also in turns that are not shown",
    run: (text) => findDialog(required(text, "/find WORDS")),
  },
  todos: { help: "the plan of this session", run: () => tab("todos") },
  continue: {
    help: "accept what was recovered of a cut answer, and go on",
    run: () => command("send_message", { text: "/continue", resume: "continue" }),
  },
  retry: {
    help: "repeat the last request; the model forgets its answer",
    run: () => command("send_message", { text: "/retry", resume: "retry" }),
  },
  compact: {
    takes: "[undo]",
    help: "summarise older turns for the model",
    run: (text) => command(text === "undo" ? "undo_compaction" : "compact"),
  },
  commit: {
    takes: "[MESSAGE]",
    help: "commit what this session changed to git, and nothing else",
    run: (text) => command("commit_changes", { message: text }),
  },
  background: {
    takes: "stop ID",
    help: "stop a command in the background",
    run: (text) =>
      command("stop_background", { background_id: required(text.replace(/^stop\s+/, ""), "/background stop ID") }),
  },
  fork: { help: "continue in a copy of this session", run: () => forkSession(session) },
  rename: {
    takes: "[TITLE]",
    help: "name this session",
    run: (text) =>
      text
        ? command("rename", { title: text })
        : renameSession(session, document.querySelector("#head h1").textContent),
  },
  status: {
    takes: "STATUS",
    help: "open, in progress, done or archived",
    run: (text) => setStatus(required(text, "/status done").replace(/[\s-]+/g, "_")),
  },
  label: { takes: "NAME|-NAME", help: "add or remove labels of this session", run: changeLabels },
  archive: {
    help: "close this session, and hide it from lists",
    run: async () => {
      await setStatus("archived");
      go("");
    },
  },
  sessions: { help: "search the sessions", run: () => document.getElementById("search").focus() },
  cost: {
    help: "what this session has cost",
    run: () =>
      toast(
        document.querySelector("#head .chip:last-child").title +
          ", " +
          document.querySelector("#head .chip:last-child").textContent,
      ),
  },
  export: { help: "write this session to one file", run: () => exportSession(session) },
  agents: { help: "agents and their past runs", run: () => go("agents") },
  clear: { help: "start a new session", run: () => go("") },
};

function lastTurn(selector) {
  return [...document.querySelectorAll(`#log > .turn:last-of-type ${selector}`)];
}

async function runSuggested(text) {
  const buttons = lastTurn("[data-act=run-command]");
  if (!buttons.length) throw new Problem("The last answer suggests no command.");
  if (text === "all" || (!text && buttons.length === 1)) {
    const commands = buttons.map((button) => button.dataset.command);
    return commands.length > 1 ? command("run_all", { commands }) : command("run_command", { command: commands[0] });
  }
  const button = buttons[Number(text) - 1];
  if (!button) throw new Problem(`Say /run all, or /run and a number from 1 to ${buttons.length}.`);
  return command("run_command", { command: button.dataset.command });
}

function nextStep(text) {
  const steps = lastTurn("[data-next] button");
  const step = steps[(Number(text) || 1) - 1];
  if (!step) throw new Problem("The last answer suggests no such next step.");
  step.click();
}

const ANYWHERE = ["help", "agents", "clear", "model", "intent", "plan", "build", "split", "verify", "init", "sessions"];

export async function runSlash(name, text) {
  if (!session && !ANYWHERE.includes(name)) {
    throw new Problem("There is no session yet.", "Your first message starts one.");
  }
  await SLASH[name].run(text);
}
