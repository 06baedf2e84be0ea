// Requests to the API and to fragments of pages, and short messages to the user.

const { dataset } = document.body;
export const base = dataset.base;
export const api = dataset.api;
export const session = dataset.session || "";

export class Problem extends Error {
  constructor(message, advice, code) {
    super(message);
    this.advice = advice || "";
    this.code = code || "";
  }
}

async function answer(response) {
  if (response.ok) return response;
  let error = { message: `The server answered ${response.status}.` };
  try {
    const found = await response.json();
    // Errors of the task list are flat, as its contract says.
    const flat = { message: [found.detail, ...(found.details || [])].join(" "), advice: found.advice, code: found.error };
    error = typeof found.error === "string" ? flat : found.error;
  } catch {
    // not JSON: the status has to do
  }
  // A message about usage says itself what to do.
  throw new Problem(error.message, error.code === "usage" ? "" : error.advice, error.code);
}

// The answer and what `read` makes of its body; a server that goes away in between is the same problem.
async function fetched(address, options, read) {
  try {
    return await read(await answer(await fetch(address, options)));
  } catch (problem) {
    if (problem instanceof Problem) throw problem;
    throw new Problem("The server cannot be reached.", "It may have been stopped; `handrail serve` starts it.");
  }
}

const isJson = (response) => response.headers.get("content-type")?.startsWith("application/json");

export function request(method, path, body, headers = {}) {
  const options = { method, headers: { ...headers } };
  if (body instanceof Blob) {
    options.headers["content-type"] = "application/octet-stream";
    options.body = body;
  } else if (body !== undefined) {
    options.headers["content-type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  return fetched(api + path, options, (response) => (isJson(response) ? response.json() : response.text()));
}

export function command(type, fields = {}, id = session) {
  return request("POST", `/sessions/${id}/commands`, { type, ...fields });
}

// A fragment of a page, as text; addresses start below the workspace.
export function part(path, options = {}) {
  return fetched(base + path, { ...options, headers: { "x-part": "1" } }, (response) => response.text());
}

export function json(path) {
  return fetched(base + path, { headers: { "x-part": "1" } }, (response) => response.json());
}

export function element(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  return template.content.firstElementChild;
}

// Put the server's markup into an element; nothing in it can run, and the policy of the page sees to that as well.
export function fill(target, html) {
  target.innerHTML = html;
}

export function make(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

export function toast(text, { bad = false, action, label, seconds = 6 } = {}) {
  const shown = make("div", { class: `toast appear${bad ? " bad" : ""}` }, make("span", {}, text));
  if (action) {
    const button = make("button", { type: "button", class: "small" }, label);
    button.addEventListener("click", () => {
      shown.remove();
      guarded(action);
    });
    shown.append(button);
  }
  const close = make("button", { type: "button", class: "small quiet", "aria-label": "Close" }, "×");
  close.addEventListener("click", () => shown.remove());
  shown.append(close);
  document.getElementById("toasts").append(shown);
  setTimeout(() => shown.remove(), seconds * 1000);
}

// Do something for the user; what goes wrong is shown, with what to do about it.
export async function guarded(action) {
  try {
    return await action();
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    toast(`${problem.message} ${problem.advice}`.trim(), { bad: true, seconds: 12 });
    return undefined;
  }
}
