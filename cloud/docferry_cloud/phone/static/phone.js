// The phone's pages. What is shown is rendered by the service, here it is only exchanged, lit up and sent.

const KEPT = "docferry.opened";
const MOST_KEPT = 20;
const REFUSED_MS = 3000;
const body = document.body;
let source = null;
let refreshing = null;
let refused = null;

const shown = () => document.getElementById("document");

// What this phone has opened is remembered on this phone alone.
function kept() {
  try {
    const found = JSON.parse(localStorage.getItem(KEPT) ?? "[]");
    return Array.isArray(found) ? found.filter((one) => /^\/r\/[0-9a-f-]{36}$/.test(one?.place)) : [];
  } catch {
    return [];
  }
}

function keep(article) {
  const { place, title } = article.dataset;
  const others = kept().filter((one) => one.place !== place);
  localStorage.setItem(KEPT, JSON.stringify([{ place, title }, ...others].slice(0, MOST_KEPT)));
}

function listOpened(list) {
  for (const { place, title } of kept()) {
    const link = document.createElement("a");
    link.href = place;
    link.textContent = title;
    const item = document.createElement("li");
    item.append(link);
    list.append(item);
  }
}

function light(boxes) {
  for (const rect of document.querySelectorAll(".sheet rect")) rect.classList.toggle("lit", boxes(rect));
  const first = document.querySelector(".sheet rect.lit");
  first?.closest(".sheet").scrollIntoView({ block: "nearest", behavior: "smooth" });
}

function choose(button) {
  const on = button.getAttribute("aria-pressed") !== "true";
  for (const field of document.querySelectorAll(".field")) {
    field.setAttribute("aria-pressed", String(on && field === button));
  }
  light((rect) => on && rect.dataset.field === button.dataset.field);
}

async function copy(button) {
  await navigator.clipboard.writeText(button.dataset.copy);
  button.textContent = body.dataset.copied;
}

// The same page once more, as it is now: what the service rendered takes the place of what it rendered before.
async function refresh() {
  const answer = await fetch(location.href, { headers: { accept: "text/html" } });
  const next = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("document");
  const old = shown();
  if (!next || !old) {
    source?.close();
    location.reload();
    return;
  }
  if (next.dataset.status === old.dataset.status && next.dataset.version === old.dataset.version) return;
  const question = document.getElementById("question")?.value ?? "";
  old.replaceWith(document.adoptNode(next));
  document.title = next.dataset.title;
  begin(next);
  if (question && document.getElementById("question")) document.getElementById("question").value = question;
}

function refreshSoon() {
  refreshing ??= refresh().catch(() => {}).finally(() => { refreshing = null; });
}

function heard(message) {
  const event = JSON.parse(message.data);
  if (event.progress) {
    const bar = document.getElementById("progress");
    if (bar && event.progress.pages) {
      bar.max = event.progress.pages;
      bar.value = event.progress.pages_done ?? 0;
    }
    return;
  }
  refreshSoon();
}

// Only while somebody looks: a page in the background holds nothing at the service, and catches up when it is back.
function follow() {
  source?.close();
  source = null;
  if (document.hidden || !shown()) return;
  source = new EventSource(`${shown().dataset.place}/events?progress=true`);
  const kinds = ["accepted", "version_added", "succeeded", "failed", "cancelled", "deleted", "wants_changed", "progress"];
  for (const kind of kinds) source.addEventListener(kind, heard);
  // A browser comes back by itself from a broken link, but not from a refusal: too many are listening, or it is over.
  source.addEventListener("error", () => {
    if (source?.readyState !== EventSource.CLOSED) return;
    clearTimeout(refused);
    refused = setTimeout(() => {
      refreshSoon();
      follow();
    }, REFUSED_MS);
  });
}

async function* messages(stream) {
  let text = "";
  for await (const piece of stream.pipeThrough(new TextDecoderStream())) {
    text += piece;
    let end = text.indexOf("\n\n");
    for (; end >= 0; end = text.indexOf("\n\n")) {
      const lines = text.slice(0, end).split("\n");
      text = text.slice(end + 2);
      const name = lines.find((line) => line.startsWith("event: "))?.slice(7) ?? "message";
      const data = lines.find((line) => line.startsWith("data: "))?.slice(6);
      if (data) yield { name, tree: JSON.parse(data) };
    }
  }
}

async function ask(form) {
  const said = form.querySelector("#answer");
  said.textContent = body.dataset.asking;
  const send = form.querySelector("button");
  send.disabled = true;
  try {
    const answer = await fetch(`${shown().dataset.place}/ask`, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "text/event-stream" },
      body: JSON.stringify({ question: form.elements.question.value }),
    });
    if (!answer.ok) throw new Error(answer.status);
    let text = "";
    for await (const { name, tree } of messages(answer.body)) {
      if (name === "error") throw new Error(tree.error.reason);
      text += tree.text ?? "";
      said.textContent = text || body.dataset.noAnswer;
      if (tree.answer) point(tree.answer.evidence ?? []);
    }
  } catch {
    said.textContent = body.dataset.askFailed;
  } finally {
    send.disabled = false;
  }
}

function point(evidence) {
  for (const old of document.querySelectorAll("rect[data-answer]")) old.remove();
  for (const { page = 0, box = {} } of evidence) {
    const sheet = document.querySelectorAll(".sheet svg")[page];
    const rect = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    const [x0, y0, x1, y1] = [box.x0, box.y0, box.x1, box.y1].map((value) => 1000 * (value ?? 0));
    for (const [name, value] of Object.entries({ x: x0, y: y0, width: Math.max(0, x1 - x0), height: Math.max(0, y1 - y0) })) {
      rect.setAttribute(name, value);
    }
    rect.dataset.answer = "";
    sheet?.append(rect);
  }
  light((rect) => "answer" in rect.dataset);
}

function bytesOf(text) {
  const plain = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(plain, (char) => char.charCodeAt(0));
}

async function subscribe(button) {
  button.disabled = true;
  try {
    if ((await Notification.requestPermission()) !== "granted") throw new Error("refused");
    const { place } = shown().dataset;
    const key = await (await fetch(`${place}/push_key`)).json();
    const worker = await navigator.serviceWorker.ready;
    const options = { userVisibleOnly: true, applicationServerKey: bytesOf(key.public_key) };
    const given = (await worker.pushManager.getSubscription()) ?? (await worker.pushManager.subscribe(options));
    const answer = await fetch(`${place}/subscriptions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ ...given.toJSON(), language: document.documentElement.lang.startsWith("zh") ? "zh" : "en" }),
    });
    if (!answer.ok) throw new Error(answer.status);
    button.textContent = body.dataset.notified;
  } catch {
    button.textContent = body.dataset.notifyFailed;
    button.disabled = false;
  }
}

function begin(article) {
  keep(article);
  const form = article.querySelector("#ask");
  if (form) form.hidden = false;
  const notify = article.querySelector("#notify");
  if (notify) notify.hidden = !("serviceWorker" in navigator && "PushManager" in globalThis && "Notification" in globalThis);
}

document.addEventListener("click", (event) => {
  const button = event.target.closest?.("button");
  if (button?.matches(".field")) choose(button);
  else if (button?.matches(".copy")) copy(button);
  else if (button?.id === "notify") subscribe(button);
});
document.addEventListener("submit", (event) => {
  if (event.target.id !== "ask") return;
  event.preventDefault();
  ask(event.target);
});
document.addEventListener("visibilitychange", () => {
  follow();
  if (!document.hidden && shown()) refreshSoon();
});

async function drop(file) {
  const said = document.getElementById("drop-text");
  if (!file || !said) return;
  said.textContent = said.dataset.dropping;
  const form = new FormData();
  form.append("file", file);
  form.append("wait_s", "0");
  try {
    const answer = await fetch("/v1/read", { method: "POST", body: form });
    const tree = await answer.json();
    if (!tree.analysis_id) throw new Error(answer.status);
    location.assign(`/r/${tree.analysis_id}`);
  } catch {
    said.textContent = said.dataset.failed;
  }
}

document.getElementById("file")?.addEventListener("change", (event) => drop(event.target.files[0]));
for (const kind of ["dragover", "drop"]) {
  document.getElementById("drop")?.addEventListener(kind, (event) => {
    event.preventDefault();
    event.currentTarget.classList.toggle("over", kind === "dragover");
    if (kind === "drop") drop(event.dataTransfer.files[0]);
  });
}

// A link is opened by its page and not by being looked at: previews of links run no scripts.
document.getElementById("claim")?.requestSubmit();
const opened = document.getElementById("opened");
if (opened) listOpened(opened);
if (shown()) {
  begin(shown());
  follow();
}
if ("serviceWorker" in navigator) navigator.serviceWorker.register("/sw.js", { scope: "/r/" }).catch(() => {});
