"use strict";

const WORDS = {
  en: {
    other: "中文", waiting: "Please put a page down.", reading: "Reading …", packed: "Read here", sent: "Sent",
    settled: "Understood", improved: "Improved", failed: "This could not be read",
    quarantined: "The service refused this document", away: "The camera gives no picture",
    lost: "One moment, please …", preview: "What the camera sees", photo: "Your photo",
    steps: ["Read", "Sent", "Understood", "Improved"], drop: "Choose or drop a photo", table: "Table recognised",
    check: "Please check", take: "Scan this to take your document along. The first phone that opens it keeps it.",
    qr: "Code of the link to your document", leave: "Done", right: "What does this line say?", save: "Save",
    cancel: "Cancel", full: "There is no room for more photos now.", unusable: "This cannot be taken.",
    corrected: "Thank you, kept.",
  },
  zh: {
    other: "English", waiting: "请放好文件。", reading: "正在识别……", packed: "已在本机识别", sent: "已发送",
    settled: "已理解", improved: "已改进", failed: "无法识别此文件", quarantined: "服务拒绝了此文件",
    away: "摄像头没有画面", lost: "请稍候……", preview: "摄像头画面", photo: "您的照片",
    steps: ["识别", "发送", "理解", "改进"], drop: "选择照片或拖放到此处", table: "已识别表格", check: "请核对",
    take: "扫码即可带走您的文件。最先打开的手机拥有它。", qr: "您的文件链接二维码", leave: "完成",
    right: "这一行写的是什么？", save: "保存", cancel: "取消", full: "暂时无法接收更多照片。", unusable: "无法接收此文件。",
    corrected: "谢谢，已保存。",
  },
};
// The agent's hints come in English; the key is the sentence.
const HINTS_ZH = {
  "Too dark: please bring more light.": "太暗了：请增加照明。",
  "Nothing to be seen: please put the page into view.": "看不到内容：请把文件放入画面。",
  "Blurred: please hold still.": "画面模糊：请保持不动。",
  "Glare: please tilt the page or move the lamp.": "有反光：请倾斜文件或移动灯。",
  "Too small: please move closer.": "字太小：请靠近一些。",
  "The page is cut off: please put all of it into view.": "文件不完整：请把整页放入画面。",
};
const FIELDS_ZH = {
  merchant: "商家", address: "地址", date: "日期", total: "合计", invoice_number: "发票号码", currency: "币种",
  subtotal: "小计", tax: "税额",
};
const STEP = { packed: 1, sent: 2, settled: 3, improved: 4 };
const IDLE_MS = 60_000;
const READING_MS = 300_000;
const MOST_DOUBTS = 2;
const MOST_FIELDS = 4;
const MOST_LINES = 12;
const OF_A_READING = new Set(["page", "layout", "lines", "line", "read"]);

const at = (id) => document.getElementById(id);
const blank = () => ({ state: "waiting", detail: "", hint: "", said: "", id: "", frame: null, table: false, answer: null, link: null });
const now = { language: "", camera: false, ...blank() };
let idle = null;
let pen = null;

function made(name, text, more = {}) {
  const element = document.createElement(name);
  element.textContent = text;
  return Object.assign(element, more);
}

function say() {
  const words = WORDS[now.language];
  document.documentElement.lang = now.language === "zh" ? "zh-Hans" : "en";
  document.body.classList.toggle("idle", !now.id);
  at("state").textContent = now.detail ? `${words[now.state]}: ${now.detail}` : words[now.state];
  at("hint").textContent = now.said ? words[now.said] : now.language === "zh" ? HINTS_ZH[now.hint] || now.hint : now.hint;
  at("language").textContent = words.other;
  at("language").lang = now.language === "zh" ? "en" : "zh-Hans";
  at("preview").alt = words.preview;
  at("photo").alt = words.photo;
  at("drop-text").textContent = words.drop;
  at("leave").textContent = words.leave;
  at("leave").hidden = !now.id;
  at("steps").replaceChildren(...words.steps.map((step, index) => {
    const done = index < (STEP[now.state] ?? 0);
    return made("li", step, { className: done ? "done" : "" });
  }));
  const table = now.table || now.answer?.tables;
  at("found").textContent = [now.answer?.summary, table ? words.table : ""].filter(Boolean).join(" · ");
  at("fields").replaceChildren(...(now.answer?.fields ?? []).slice(0, MOST_FIELDS).flatMap(({ name, value }) => [
    made("dt", now.language === "zh" ? FIELDS_ZH[name] || name : name.replaceAll("_", " ")), made("dd", value),
  ]));
  const doubts = (now.answer?.lines ?? []).filter((line) => line.doubtful).slice(0, MOST_DOUBTS);
  at("doubts").replaceChildren(...doubts.map((line) => {
    const item = made("li", "");
    const button = made("button", `${words.check}: ${line.text}`, { type: "button" });
    button.addEventListener("click", () => open(line));
    item.append(button);
    return item;
  }));
  at("take").hidden = !now.link;
  at("take-text").textContent = words.take;
  at("qr").setAttribute("aria-label", words.qr);
  at("pen-title").textContent = words.right;
  at("save").textContent = words.save;
  at("cancel").textContent = words.cancel;
}

// From the page, relative, to what is shown: the camera's frame or the photo where there is one, else the page itself.
function shown([x, y]) {
  const m = (now.camera || !at("photo").hidden) && now.frame;
  if (!m) return [x, y];
  const w = m[6] * x + m[7] * y + m[8];
  return [(m[0] * x + m[1] * y + m[2]) / w, (m[3] * x + m[4] * y + m[5]) / w];
}

function draw(points, kind) {
  const shape = document.createElementNS("http://www.w3.org/2000/svg", "polygon");
  shape.setAttribute("points", points.map((point) => shown(point).join(",")).join(" "));
  shape.setAttribute("class", kind);
  at("boxes").append(shape);
  return shape;
}

function showPhoto(file) {
  if (at("photo").src) URL.revokeObjectURL(at("photo").src);
  at("photo").hidden = true;
  at("photo").removeAttribute("src");
  if (file?.type.startsWith("image/")) {
    at("photo").src = URL.createObjectURL(file);
    at("photo").hidden = false;
  }
  lay();
}

function lay() {
  at("preview").hidden = !now.camera || !at("photo").hidden;
  at("sheet").className = now.camera ? "camera" : at("photo").hidden ? "page" : "";
}

function clear() {
  Object.assign(now, blank());
  at("boxes").replaceChildren();
  at("lines").replaceChildren();
  at("qr").querySelector("path").removeAttribute("d");
  at("file").value = "";
  if (at("pen").open) at("pen").close();
  showPhoto(null);
  say();
}

function mark() {
  for (const old of at("boxes").querySelectorAll(".doubt")) old.remove();
  for (const line of now.answer?.lines ?? []) {
    if (!line.doubtful || line.page > 0) continue;
    draw(line.polygon, "doubt").addEventListener("click", () => open(line));
  }
}

function open(line) {
  pen = line;
  at("said").value = line.text;
  at("pen-problem").textContent = "";
  at("pen").showModal();
}

async function post(path, body, type) {
  const answer = await fetch(path, { method: "POST", body, headers: { "content-type": type } });
  if (!answer.ok) throw new Error(String(answer.status));
  return answer.json();
}

async function save() {
  const line = pen;
  const wish = { document_id: now.id, page: line.page, line_id: line.id, text: at("said").value };
  try {
    await post("/correct", JSON.stringify(wish), "application/json");
    at("pen").close();
    now.said = "corrected";
  } catch {
    at("pen-problem").textContent = WORDS[now.language].unusable;
  }
  say();
}

async function take(file) {
  if (!file) return;
  await leave();
  showPhoto(file);
  Object.assign(now, { state: "reading", said: "" });
  try {
    const { document_id: id } = await post(`/drop?name=${encodeURIComponent(file.name)}`, file, "application/octet-stream");
    // The event that tells of it may have come first; of a folder's document there may be a trace.
    if (now.id !== id) {
      clear();
      showPhoto(file);
      Object.assign(now, { id, state: "reading" });
    }
    rest();
  } catch (error) {
    clear();
    now.said = error.message === "507" ? "full" : "unusable";
  }
  say();
}

// What was shown is gone, here and for whoever opens this page next.
async function leave() {
  clear();
  await post("/leave", "", "application/json").catch(() => {});
}

// Whoever has walked away leaves nothing behind; while a page is read they have longer to wait.
function rest() {
  clearTimeout(idle);
  if (now.id) idle = setTimeout(leave, now.state === "reading" ? READING_MS : IDLE_MS);
}

const HEARD = {
  camera(event) {
    if ("present" in event) {
      now.camera = event.present;
      lay();
      if (event.present && !at("preview").src) at("preview").src = "/preview";
    }
    if (event.state && !now.id) Object.assign(now, { state: event.state === "away" ? "away" : "waiting", detail: "" });
  },
  document(event) {
    if (now.id && now.id !== event.document_id) clear();
    Object.assign(now, { ...blank(), id: event.document_id, state: "reading" });
    at("boxes").replaceChildren();
    at("lines").replaceChildren();
    rest();
  },
  page(event) {
    if (event.page > 0) return;
    Object.assign(now, { frame: event.to_frame, hint: event.hint });
    at("boxes").replaceChildren();
  },
  layout(event) {
    now.table ||= event.regions.some((region) => region.type === "table");
    if (event.page > 0) return;
    for (const { box: [x0, y0, x1, y1] } of event.regions) draw([[x0, y0], [x1, y0], [x1, y1], [x0, y1]], "region");
  },
  lines(event) {
    if (event.page > 0) return;
    for (const polygon of event.polygons) draw(polygon, "line");
  },
  line(event) {
    if (!(event.page > 0)) draw(event.polygon, "read");
    at("lines").append(made("li", event.text));
    while (at("lines").children.length > MOST_LINES) at("lines").firstChild.remove();
  },
  read(event) {
    if (event.hint) now.hint = event.hint;
  },
  state(event) {
    if (event.document_id !== now.id) return;
    if ((STEP[event.state] ?? 9) < (STEP[now.state] ?? 0)) return;
    Object.assign(now, { state: event.state, detail: event.reason || "" });
    rest();
  },
  answer(event) {
    if (event.document_id !== now.id || event.version < (now.answer?.version ?? 0)) return;
    const better = now.answer && now.answer.version > 1 && event.version > now.answer.version;
    now.answer = event;
    if (better) now.state = "improved";
    at("lines").replaceChildren();
    mark();
    rest();
  },
  corrected(event) {
    if (event.document_id !== now.id) return;
    for (const line of now.answer?.lines ?? []) {
      if (line.page === event.page && line.id === event.id) Object.assign(line, { text: event.text, doubtful: false });
    }
    mark();
  },
  claim(event) {
    if (event.document_id !== now.id) return;
    now.link = event.link;
    at("qr").setAttribute("viewBox", `0 0 ${event.size} ${event.size}`);
    at("qr").querySelector("path").setAttribute("d", event.path);
  },
  left(event) {
    if (now.id && (event.document_id ?? now.id) === now.id) clear();
  },
};

function choose(language) {
  now.language = language;
  say();
}

function listen() {
  const source = new EventSource("/events");
  source.onmessage = (message) => {
    const event = JSON.parse(message.data);
    // What is still on its way when the guest has left is not shown any more.
    if (OF_A_READING.has(event.type) && !now.id) return;
    if (Object.hasOwn(HEARD, event.type)) HEARD[event.type](event);
    say();
  };
  source.onopen = () => {
    if (now.state === "lost") Object.assign(now, { state: "waiting" });
    say();
  };
  source.onerror = () => {
    if (!now.id) now.state = "lost";
    say();
  };
}

at("language").addEventListener("click", () => choose(now.language === "zh" ? "en" : "zh"));
at("leave").addEventListener("click", leave);
at("file").addEventListener("change", () => take(at("file").files[0]));
at("cancel").addEventListener("click", () => at("pen").close());
at("right").addEventListener("submit", (event) => {
  event.preventDefault();
  save();
});
for (const kind of ["dragover", "drop"]) {
  document.addEventListener(kind, (event) => {
    event.preventDefault();
    at("drop").classList.toggle("over", kind === "dragover");
    if (kind === "drop") take(event.dataTransfer.files[0]);
  });
}
for (const kind of ["pointerdown", "pointermove", "keydown"]) document.addEventListener(kind, rest);
// A stream that broke off does not begin again by itself.
at("preview").addEventListener("error", () => setTimeout(() => { at("preview").src = `/preview?${Date.now()}`; }, 2000));
choose(navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en");
listen();
