"use strict";

const WORDS = {
  en: {
    other: "中文", waiting: "Please put a page down.", reading: "Reading", packed: "Read here; the full answer is on its way",
    settled: "Done", failed: "This could not be read", quarantined: "The service refused this document",
    away: "The camera gives no picture", lost: "The agent does not answer", preview: "What the camera sees",
  },
  zh: {
    other: "English", waiting: "请放好文件。", reading: "正在识别", packed: "已在本机识别，完整结果稍后送达",
    settled: "完成", failed: "无法识别此文件", quarantined: "服务拒绝了此文件",
    away: "摄像头没有画面", lost: "程序没有响应", preview: "摄像头画面",
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

const at = (id) => document.getElementById(id);
const now = { language: "", state: "waiting", detail: "", hint: "", id: "", camera: false, frame: null, size: null };

function say() {
  const words = WORDS[now.language];
  document.documentElement.lang = now.language === "zh" ? "zh-Hans" : "en";
  at("state").textContent = now.detail ? `${words[now.state]}: ${now.detail}` : words[now.state];
  at("hint").textContent = now.language === "zh" ? HINTS_ZH[now.hint] || now.hint : now.hint;
  at("language").textContent = words.other;
  at("language").lang = now.language === "zh" ? "en" : "zh-Hans";
  at("preview").alt = words.preview;
}

// From the page, relative, to what is shown: the camera's frame where there is a camera, else the page itself.
function shown([x, y]) {
  const m = now.camera && now.frame;
  if (!m) return [x, y];
  const w = m[6] * x + m[7] * y + m[8];
  return [(m[0] * x + m[1] * y + m[2]) / w, (m[3] * x + m[4] * y + m[5]) / w];
}

function draw(points, kind) {
  const shape = document.createElementNS("http://www.w3.org/2000/svg", "polygon");
  shape.setAttribute("points", points.map((point) => shown(point).join(",")).join(" "));
  shape.setAttribute("class", kind);
  at("boxes").append(shape);
}

const HEARD = {
  camera(event) {
    if ("present" in event) {
      now.camera = event.present;
      at("preview").hidden = !event.present;
      at("view").classList.toggle("page", !event.present);
      if (event.present && !at("preview").src) at("preview").src = "/preview";
    }
    if (event.state) Object.assign(now, { state: event.state === "away" ? "away" : "waiting", detail: "" });
  },
  document(event) {
    Object.assign(now, { id: event.document_id, state: "reading", detail: event.file, hint: "", frame: null });
    at("boxes").replaceChildren();
    at("lines").replaceChildren();
  },
  page(event) {
    Object.assign(now, { frame: event.to_frame, hint: event.hint });
    at("boxes").replaceChildren();
  },
  layout(event) {
    for (const { box: [x0, y0, x1, y1] } of event.regions) draw([[x0, y0], [x1, y0], [x1, y1], [x0, y1]], "region");
  },
  lines(event) {
    for (const polygon of event.polygons) draw(polygon, "line");
  },
  line(event) {
    draw(event.polygon, "read");
    const item = document.createElement("li");
    item.textContent = event.text;
    at("lines").append(item);
  },
  read(event) {
    if (event.hint) now.hint = event.hint;
  },
  state(event) {
    if (event.document_id !== now.id) return;
    Object.assign(now, { state: event.state, detail: event.reason || event.file });
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
    if (Object.hasOwn(HEARD, event.type)) HEARD[event.type](event);
    say();
  };
  source.onerror = () => {
    Object.assign(now, { state: "lost", detail: "" });
    say();
  };
}

at("language").addEventListener("click", () => choose(now.language === "zh" ? "en" : "zh"));
// A stream that broke off does not begin again by itself.
at("preview").addEventListener("error", () => setTimeout(() => { at("preview").src = `/preview?${Date.now()}`; }, 2000));
choose(navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en");
listen();
