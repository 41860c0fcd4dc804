"use strict";
// Keeps the page itself for the next time; the worker keeps Python. `make web` fills in the names.
const KEPT = "unsample-page-@VERSION@";
const FILES = "@FILES@";

self.addEventListener("install", (event) => {
  event.waitUntil(caches.open(KEPT).then((kept) => kept.addAll(FILES)));
});
self.addEventListener("activate", (event) => {
  event.waitUntil((async () => {
    for (const name of await caches.keys()) {
      if (name.startsWith("unsample-page-") && name !== KEPT) await caches.delete(name);
    }
    await self.clients.claim();
  })());
});
self.addEventListener("fetch", (event) => {
  if (event.request.method !== "GET") return;
  event.respondWith((async () => {
    const kept = await caches.open(KEPT);
    return (await kept.match(event.request, { ignoreSearch: true })) ?? fetch(event.request);
  })());
});
