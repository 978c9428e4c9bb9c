// Everything that a page does beside showing itself. Pages can be read without it.
import { live } from "./live.js";
import { keys } from "./keys.js";
import { select } from "./select.js";
import { log } from "./log.js";
import { charts } from "./charts.js";
import { copy, dialogs, goOn } from "./small.js";

document.documentElement.classList.add("has-js");
const parts = [copy, dialogs, select, keys, log, charts, goOn];
for (const part of parts) part();
// Where the menu is a line that is too long, the page one is on is in sight.
document.querySelector("#nav [aria-current]")?.scrollIntoView({ inline: "center", block: "nearest" });
live();
