// Parts of a page that come by themselves: numbers every few seconds, terms while somebody types, and the answer to a
// form in its place. Without this script the forms are sent as forms, and the page shows the numbers of when it was made.
"use strict";

/** Return the text that answers a request, or nothing where there is no connection; who was signed out signs in again. */
async function fetchPart(address, options = {}) {
  const answer = await fetch(address, { redirect: "manual", ...options }).catch(() => null);
  if (answer?.type === "opaqueredirect") location.assign("/sign-in");
  return answer && answer.type !== "opaqueredirect" ? { ok: answer.ok, text: await answer.text() } : null;
}

document.querySelectorAll("[data-renews]").forEach((place) => {
  setInterval(async () => {
    const part = await fetchPart(place.dataset.renews);
    if (part?.ok) place.innerHTML = part.text;
  }, 5000);
});

document.querySelectorAll("[data-suggests]").forEach((field) => {
  const place = document.getElementById(field.dataset.target);
  let timer = 0;
  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(async () => {
      const written = field.value;
      const part = await fetchPart(`${field.dataset.suggests}?${new URLSearchParams({ [field.name]: written })}`);
      if (part?.ok && written === field.value) place.innerHTML = part.text; // and not of what was written before
    }, 300);
  });
});

document.querySelectorAll("form[data-here]").forEach((form) => {
  let isSending = false; // two quick clicks send it once
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (isSending) return;
    isSending = true;
    const body = new URLSearchParams([...new FormData(form), ["here", "yes"]]);
    const part = await fetchPart(form.action, { method: "POST", body });
    isSending = false;
    if (!part) return; // what was written stays
    if (part.ok) form.outerHTML = part.text;
    else form.append(new DOMParser().parseFromString(part.text, "text/html").querySelector(".message") ?? "");
  });
});

document.querySelectorAll("form[data-once]").forEach((form) => {
  let isSending = false; // for a while: who stopped the page from loading, or came back to it, may send again
  form.addEventListener("submit", (event) => {
    if (isSending) event.preventDefault();
    else setTimeout(() => { isSending = false; }, 5000);
    isSending = true;
  });
});
