// Tables are sorted by a click on a heading, or Enter or Space there. Without this they are whole.
for (const table of document.querySelectorAll("table")) {
  const headings = [...table.tHead.rows[0].cells];
  const rows = [...table.tBodies[0].rows];
  const number = text => parseFloat(text.replace(/,/g, ""));
  headings.forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const direction = heading.ariaSort === "descending" ? "ascending" : "descending";
      const sign = direction === "ascending" ? 1 : -1;
      const key = row => row.cells[column].textContent;
      const numeric = rows.some(row => !isNaN(number(key(row)))) && column > 0;
      const compare = (one, other) => {
        if (!numeric) return sign * key(one).localeCompare(key(other));
        const [a, b] = [number(key(one)), number(key(other))];
        // What has no number comes last either way.
        return isNaN(a) - isNaN(b) || (isNaN(a) ? 0 : sign * (a - b));
      };
      headings.forEach(other => other.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", direction);
      table.tBodies[0].append(...[...rows].sort(compare));
    });
  });
}
