// The doors to a model, and settings.

import { base, fill, make, part, request, toast } from "./api.js";

const POLL_MS = 700;

export const clicks = {
  async "find-servers"() {
    const target = document.getElementById("servers");
    target.textContent = "Looking…";
    const found = await request("GET", "/models");
    const models = found.servers.flatMap((server) => server.models);
    target.replaceChildren(
      ...models.map((name) =>
        make("button", { type: "button", class: "chip", "data-act": "use-model", "data-id": name }, name),
      ),
    );
    if (!models.length)
      target.textContent = found.servers.length ? "A server answers, but has no model yet." : "None answers.";
  },
  async "use-model"(button) {
    await request("PUT", "/models/main", { model: button.dataset.id });
    location.reload();
  },
  async "download-model"(button) {
    button.disabled = true;
    const bar = document.getElementById("download");
    const words = document.getElementById("download-words");
    bar.hidden = false;
    for (let now = await request("POST", "/models/small/download"); ; now = await request("GET", "/models/small")) {
      bar.max = now.bytes;
      bar.value = now.downloaded;
      words.textContent = now.problem || `${(now.downloaded / 1e6).toFixed(0)} of ${(now.bytes / 1e6).toFixed(0)} MB`;
      if (now.state === "done") return location.reload();
      if (now.state !== "downloading") {
        button.disabled = false;
        return undefined;
      }
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  },
  async "trust-agent"(button) {
    await request("POST", "/trust", { agents: { [button.dataset.id]: button.dataset.hash } });
    location.reload();
  },
  async "trust-skill"(button) {
    await request("POST", "/trust", { skills: { [button.dataset.id]: button.dataset.hash } });
    location.reload();
  },
  async "trust-source"(button) {
    await request("POST", "/trust", { sources: { [button.dataset.id]: button.dataset.hash } });
    location.reload();
  },
  async "add-source"(button) {
    await request("POST", "/sources", { name: button.dataset.id });
    location.reload();
  },
  async "test-source"(button) {
    const target = button.closest("section").querySelector(".trial");
    button.disabled = true;
    target.textContent = "Trying…";
    try {
      const found = await request("POST", `/sources/${button.dataset.id}/test`);
      const words = found.ok ? `Works: ${found.server}, ${found.seconds.toFixed(1)} s` : found.problem;
      const tools = found.tools.map((tool) =>
        make("li", {}, make("code", {}, tool.name), ` ${tool.allowed ? "" : "(denied) "}${tool.description}`),
      );
      target.replaceChildren(make("p", {}, words), make("ul", {}, ...tools));
      button.closest("section").querySelector(".health").textContent = found.ok ? "ready" : "failed";
    } finally {
      button.disabled = false;
    }
  },
  async "remove-source"(button) {
    const words = "Yes, remove it with its secrets";
    if (button.textContent !== words) {
      button.textContent = words;
      return;
    }
    await request("DELETE", `/sources/${button.dataset.id}`);
    location.reload();
  },
  async "trust-command"(button) {
    await request("POST", "/trust", { commands: { [button.dataset.id]: button.dataset.hash } });
    location.reload();
  },
  async "trust-settings"(button) {
    await request("POST", "/trust", { files: JSON.parse(button.dataset.files) });
    location.reload();
  },
  async "remove-credential"(button) {
    await request("POST", "/credentials/remove", { names: [button.dataset.id] });
    location.reload();
  },
  "start-build": () => location.assign(`${base}/?text=${encodeURIComponent("/build ")}`),
  "use-agent": (button) => location.assign(`${base}/?text=${encodeURIComponent(`@${button.dataset.id} `)}`),
};

export const submits = {
  async "key-form"(form) {
    const button = form.querySelector("button");
    button.disabled = true;
    try {
      await request("POST", "/models/key", { key: form.key.value.trim(), connection: form.provider.value });
      location.reload();
    } finally {
      button.disabled = false;
    }
  },
  async "credential-form"(form) {
    await request("POST", "/credentials", { name: form.name.value.trim(), value: form.value.value });
    location.reload();
  },
  async "source-secret"(form) {
    const { id, variable } = form.dataset;
    await request("PUT", `/sources/${id}/secret`, { variable, value: form.value.value });
    location.reload();
  },
  async "setting-form"(form) {
    const saved = await request("PUT", `/settings/${form.dataset.id}`, { value: form.value.value });
    toast(saved.applied ? "Stored." : "Stored. It counts when the running turn has ended.");
  },
};

export const changes = {
  async "view-file"(input) {
    fill(document.getElementById("viewer"), await part("/viewer", { method: "POST", body: input.files[0] }));
  },
};
