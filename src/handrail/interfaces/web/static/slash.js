// Slash commands of the composer.

import { base, command, session, toast, Problem } from "./api.js";
import { exportSession, forkSession, renameSession } from "./actions.js";
import { findDialog, helpDialog, rewindDialog } from "./dialogs.js";
import { showTab } from "./feed.js";

const go = (path) => location.assign(`${base}/${path}`);

async function tab(name) {
  document.getElementById("inspector").classList.add("open");
  await showTab(name);
}

function required(text, usage) {
  if (!text) throw new Problem(`Say ${usage}.`);
  return text;
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

export async function runSlash(name, text) {
  if (!session && !["help", "agents", "clear", "model", "intent"].includes(name)) {
    throw new Problem("There is no session yet.", "Your first message starts one.");
  }
  await SLASH[name].run(text);
}
