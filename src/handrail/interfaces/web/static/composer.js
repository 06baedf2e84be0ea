// The composer: sends messages and slash commands, completes @ and /, attaches images.

import { base, command, guarded, json, make, request, session } from "./api.js";
import { state } from "./feed.js";
import { SLASH, chosenIn, picked, runSlash } from "./slash.js";

const form = document.getElementById("composer");
const input = document.getElementById("message");
const list = document.getElementById("completions");
const MENTION = /(?:^|\s)@("[^"\n]*|[^\s"]*)$/;
const PLAIN_PATH = /^[\w./~+-]*$/;
let images = [];
let options = [];
let chosen = 0;

export function focusMessage() {
  (input || document.getElementById("task-message"))?.focus();
}

export function fillComposer(text) {
  input.value = text;
  input.focus();
  input.setSelectionRange(text.length, text.length);
}

export function mention() {
  const before = input.value.slice(0, input.selectionStart);
  input.setRangeText(before && !/\s$/.test(before) ? " @" : "@", input.selectionStart, input.selectionEnd, "end");
  input.focus();
  guarded(suggest);
}

export async function attachFiles(files) {
  for (const file of files) {
    const image = await request("POST", "/images", file);
    images.push(image);
    const remove = make("button", { type: "button", class: "quiet small", "aria-label": `Remove ${file.name}` }, "×");
    const chip = make("span", { class: "chip" }, `${file.name}, ${image.width} × ${image.height}`, remove);
    remove.addEventListener("click", () => {
      images = images.filter((each) => each !== image);
      chip.remove();
    });
    document.getElementById("attached").append(chip);
  }
}

// The user's own commands, and those of the workspace.
async function ownCommands() {
  const { commands } = await request("GET", "/own-commands");
  return commands
    .filter(({ name }) => !Object.hasOwn(SLASH, name))
    .map(({ name, arguments: takes, description, usable }) => [
      name,
      { takes, help: usable ? description : "not trusted: the settings show it" },
    ]);
}

async function expanded(name, argument) {
  try {
    return (await request("POST", `/own-commands/${name}`, { argument })).text;
  } catch (problem) {
    if (problem.code === "not_found") problem.advice = "Type / to see them all.";
    throw problem;
  }
}

// Handrail's commands at once, the user's own when they have come and nothing was typed or chosen meanwhile.
async function suggestCommands(typed) {
  const matching = (entries) =>
    entries
      .filter(([name]) => name.startsWith(typed))
      .map(([name, { help, takes }]) => ({
        text: `/${name}`,
        note: help,
        from: 0,
        insert: `/${name}${takes ? " " : ""}`,
      }));
  const ours = matching(Object.entries(SLASH));
  options = ours;
  chosen = 0;
  show();
  const own = matching(await ownCommands());
  if (options !== ours) return;
  options = [...ours, ...own];
  show();
}

async function suggest() {
  const before = input.value.slice(0, input.selectionStart);
  const slash = /^\/([a-z0-9-]*)$/.exec(before);
  const named = MENTION.exec(before);
  if (slash) {
    await suggestCommands(slash[1]);
    return;
  }
  if (named) {
    const typed = named[1].replace(/^"/, "");
    const from = before.length - named[1].length;
    const first = from === 1 ? "1" : "";
    const found = await json(`/complete?q=${encodeURIComponent(typed)}&first=${first}`);
    if (input.value.slice(0, input.selectionStart) !== before) return;
    options = found.map(({ text, note }) => {
      const folder = text.endsWith("/");
      const quoted = folder ? `"${text}` : `"${text}"`;
      return { text, note, from, insert: (PLAIN_PATH.test(text) ? text : quoted) + (folder ? "" : " ") };
    });
  } else {
    options = [];
  }
  chosen = 0;
  show();
}

function show() {
  list.hidden = !options.length;
  list.replaceChildren(
    ...options.map((option, at) => {
      const row = make(
        "div",
        { role: "option", id: `option-${at}`, "aria-selected": String(at === chosen) },
        make("code", {}, option.text),
        make("span", { class: "soft" }, option.note),
      );
      row.addEventListener("mousedown", (event) => {
        event.preventDefault();
        chosen = at;
        accept();
      });
      return row;
    }),
  );
  if (options.length) input.setAttribute("aria-activedescendant", `option-${chosen}`);
  else input.removeAttribute("aria-activedescendant");
  list.children[chosen]?.scrollIntoView({ block: "nearest" });
}

function accept() {
  const option = options[chosen];
  if (!option.text.startsWith("/") && option.note !== "agent") picked.add(option.text);
  input.setRangeText(option.insert, option.from, input.selectionStart, "end");
  options = [];
  show();
  if (option.insert.endsWith("/")) guarded(suggest);
}

async function send() {
  const text = input.value;
  options = [];
  show();
  if (!text.trim() && !images.length) return;
  const slash = /^\/([A-Za-z][A-Za-z0-9-]*)(?:\s+([\s\S]*))?$/.exec(text.trim());
  const argument = (slash?.[2] || "").trim();
  input.value = "";
  try {
    if (slash && Object.hasOwn(SLASH, slash[1])) await runSlash(slash[1], argument);
    else await sendMessage(slash ? await expanded(slash[1], argument) : text);
  } catch (problem) {
    input.value = input.value || text;
    throw problem;
  }
}

async function sendMessage(text) {
  const attached = document.getElementById("attached");
  const chips = [...attached.children];
  const sent = images;
  const message = { text, images, chosen: chosenIn(text) };
  attached.replaceChildren();
  images = [];
  try {
    if (session) {
      await command("send_message", { ...message, seen: state.seq });
      return;
    }
    const mode = document.getElementById("mode");
    const route = document.getElementById("route");
    const changed = (select) => (select.selectedOptions[0].defaultSelected ? undefined : select.value);
    const made = await request("POST", "/sessions", { mode: changed(mode), route: changed(route) });
    await command("send_message", message, made.id);
    location.assign(`${base}/s/${made.id}`);
  } catch (problem) {
    attached.replaceChildren(...chips);
    images = sent;
    throw problem;
  }
}

export function start() {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    guarded(send);
  });
  input.addEventListener("input", () => guarded(suggest));
  input.addEventListener("blur", () => {
    options = [];
    show();
  });
  input.addEventListener("paste", (event) => {
    const files = [...(event.clipboardData?.files || [])].filter((file) => file.type.startsWith("image/"));
    if (!files.length) return;
    event.preventDefault();
    guarded(() => attachFiles(files));
  });
  input.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    const complete = event.key === "Enter" && options[chosen]?.insert.trim() === input.value.trim();
    if (options.length && !complete) {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step) {
        chosen = (chosen + step + options.length) % options.length;
        show();
      } else if (event.key === "Tab" || event.key === "Enter") accept();
      else if (event.key === "Escape") {
        options = [];
        show();
        event.stopPropagation();
      } else return;
      event.preventDefault();
      return;
    }
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      guarded(send);
    }
  });
  const given = new URLSearchParams(location.search).get("text");
  if (given) fillComposer(given);
  if (!document.querySelector("[data-question]") && matchMedia("(min-width: 761px)").matches) input.focus();
}
