// Stands between the phone's pages and the network: keeps the shell for when there is none, and shows what is pushed.
"use strict";

const SHELL = "docferry-shell-1";
const OFFLINE = "/phone/offline";
const FILES = [OFFLINE, "/phone/phone.css", "/phone/phone.js", "/phone/icon.svg"];
const SOMETHING = { en: "Your document has changed", zh: "您的文件有更新" };

self.addEventListener("install", (event) => {
  event.waitUntil(caches.open(SHELL).then((cache) => cache.addAll(FILES)).then(() => self.skipWaiting()));
});

self.addEventListener("activate", (event) => {
  const old = (names) => names.filter((name) => name !== SHELL).map((name) => caches.delete(name));
  event.waitUntil(caches.keys().then((names) => Promise.all(old(names))).then(() => self.clients.claim()));
});

// The network first, always: no document is kept here, only the shell.
self.addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.mode === "navigate") {
    event.respondWith(fetch(request).catch(() => caches.match(OFFLINE)));
  } else if (FILES.includes(new URL(request.url).pathname)) {
    event.respondWith(fetch(request).catch(() => caches.match(request.url)));
  }
});

function told(event) {
  try {
    const found = event.data.json();
    return found && typeof found === "object" ? found : {};
  } catch {
    return {};
  }
}

self.addEventListener("push", (event) => {
  const message = told(event);
  const known = /^[0-9a-f-]{36}$/.test(message.analysis_id);
  const language = message.language === "zh" ? "zh" : "en";
  const title = typeof message.title === "string" && message.title ? message.title : SOMETHING[language];
  // Only ever a page of our own, whatever the message says.
  const place = known ? `/r/${message.analysis_id}` : "/r/";
  event.waitUntil(self.registration.showNotification(title, { tag: place, icon: "/phone/icon.svg", data: { place } }));
});

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  const address = new URL(event.notification.data.place, self.location.origin).href;
  event.waitUntil(
    self.clients.matchAll({ type: "window", includeUncontrolled: true }).then((pages) => {
      const there = pages.find((page) => new URL(page.url).pathname === new URL(address).pathname);
      return there ? there.focus() : self.clients.openWindow(address);
    }),
  );
});
