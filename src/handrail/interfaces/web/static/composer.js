// The composer: sends messages and slash commands, completes @ and /, attaches images.

import { base, command, guarded, json, make, request, session, toast } from "./api.js";
import { state } from "./feed.js";
import { SLASH, runSlash } from "./slash.js";

const form = document.getElementById("composer");
const input = document.getElementById("message");
const list = document.getElementById("completions");
const MENTION = /(?:^|\s)@("[^"\n]*|[^\s"]*)$/;
const PLAIN_PATH = /^[\w./~+-]*$/;
let images = [];
let options = [];
let chosen = 0;

export function focusMessage() {
  input?.focus();
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

async function suggest() {
  const before = input.value.slice(0, input.selectionStart);
  const slash = /^\/([a-z]*)$/.exec(before);
  const named = MENTION.exec(before);
  if (slash) {
    options = Object.entries(SLASH)
      .filter(([name]) => name.startsWith(slash[1]))
      .map(([name, entry]) => ({
        text: `/${name}`,
        note: entry.help,
        from: 0,
        insert: `/${name}${entry.takes ? " " : ""}`,
      }));
  } else if (named) {
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
  const slash = /^\/([a-z]+)(?:\s+([\s\S]*))?$/.exec(text.trim());
  if (slash && Object.hasOwn(SLASH, slash[1])) {
    input.value = "";
    await runSlash(slash[1], (slash[2] || "").trim());
    return;
  }
  if (slash) {
    toast(`There is no command /${slash[1]}. /help lists them.`, { bad: true });
    return;
  }
  const message = { text, images };
  input.value = "";
  document.getElementById("attached").replaceChildren();
  const sent = images;
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
    input.value = input.value || text;
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
