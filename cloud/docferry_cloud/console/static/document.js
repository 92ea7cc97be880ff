// Pages are asked for as they come into sight, and fields light up where they stand on the paper.
const places = document.querySelectorAll("[data-piece]");

function watchPicture(figure) {
  const picture = figure.querySelector("img");
  const blank = () => figure.classList.add("blank");
  if (picture.complete && picture.naturalWidth === 0 && picture.currentSrc) blank();
  picture.addEventListener("error", blank);
}

async function fill(place) {
  const address = place.dataset.piece;
  delete place.dataset.piece;
  const answer = await fetch(address, { headers: { accept: "text/html" } });
  if (!answer.ok || answer.redirected) {
    place.dataset.piece = address;
    return;
  }
  // Parsed apart from this page; the policy lets no script in it run, wherever it stands.
  const made = new DOMParser().parseFromString(await answer.text(), "text/html");
  place.replaceChildren(...made.body.childNodes);
  place.querySelectorAll(".paper").forEach(watchPicture);
}

const observer = new IntersectionObserver(
  (entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      observer.unobserve(entry.target);
      fill(entry.target);
    }
  },
  { rootMargin: "300px" },
);
places.forEach((place) => observer.observe(place));
document.querySelectorAll(".paper").forEach(watchPicture);

function light(link) {
  document.querySelectorAll(".lit").forEach((lit) => lit.classList.remove("lit"));
  const page = document.getElementById(`p${link.dataset.page}`);
  if (!page) return;
  for (const place of page.querySelectorAll("[data-line]")) {
    if (place.dataset.line === link.dataset.line) place.classList.add("lit");
  }
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-page]");
  if (link) light(link);
});
document.addEventListener("focusin", (event) => {
  const link = event.target.closest("a[data-page]");
  if (link) light(link);
});
