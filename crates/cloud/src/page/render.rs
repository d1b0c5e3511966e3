//! [`page`]: an overview as HTML, for a screen, a narrow one, a screen reader and paper; no script, no style of its own.

use std::collections::HashSet;

use overlay::{Name, Policy};

use super::html::Html;
use super::http::Form;
use super::verdict::Verdict;
use crate::overview::{Node, Overview, Path, State};
use crate::policy::Written;

/// Nodes of the table of who reaches whom: those with paths first. More would not be read.
const SQUARE: usize = 12;

/// The page.
pub(super) fn page(overview: &Overview, form: &Form) -> String {
    let mut html = Html::default();
    let policy = Written::read(&overview.policy).map(|written| written.policy).unwrap_or_default();
    let policy = Policy { version: overview.policy_version, ..policy };
    html.raw("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n");
    html.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    html.raw("<meta name=\"color-scheme\" content=\"light dark\">\n<title>");
    html.text(&overview.domain).raw(": tamis-cloud</title>\n");
    html.raw("<link rel=\"stylesheet\" href=\"/style.css\"></head>\n<body>\n");
    head(&mut html, overview);
    html.raw("<main id=\"main\">\n");
    question(&mut html, overview, &policy, form);
    square(&mut html, overview, &policy);
    nodes(&mut html, overview);
    paths(&mut html, overview);
    written(&mut html, overview);
    log(&mut html, overview);
    html.raw("</main>\n<footer><p>Read-only, for browsers on this host. <a href=\"/\">Load again</a></p></footer>\n");
    html.raw("</body></html>\n");
    html.take()
}

fn head(html: &mut Html, overview: &Overview) {
    html.raw("<header>\n<p class=\"what\">tamis-cloud, the directory</p>\n<h1>");
    html.text(&overview.domain).raw("</h1>\n<p>as of <time>").text(&overview.time);
    html.raw("</time></p>\n<dl class=\"sum\">\n");
    let figure = |html: &mut Html, what: &'static str, figure: String, more: String| {
        html.raw("<div><dt>").raw(what).raw("</dt><dd><strong>").text(figure);
        html.raw("</strong> <span>").text(more).raw("</span></dd></div>\n");
    };
    let of = format!("of {} nodes", number(overview.node_count as u64));
    figure(html, "There now", number(overview.present_count as u64), of);
    let ways = format!("{} direct, {} by the relay", overview.direct_count, overview.relay_count);
    figure(html, "Paths", number(overview.path_count as u64), ways);
    let (forwarded, dropped) = overview.relayed;
    let more = format!("datagrams, {} dropped", number(dropped));
    figure(html, "Relayed", number(forwarded), more);
    figure(html, "Policy version", number(overview.policy_version), String::new());
    html.raw("</dl>\n");
    overview.servers.iter().for_each(|(name, is_there)| apart(html, name, *is_there));
    html.raw("<nav aria-label=\"Parts of this page\"><ul>");
    html.raw(
        "<li><a href=\"#ask\">Ask the policy</a></li><li><a href=\"#whom\">Who with whom</a></li>",
    );
    html.raw("<li><a href=\"#nodes\">Nodes</a></li><li><a href=\"#paths\">Paths</a></li>");
    html.raw("<li><a href=\"#policy\">Policy</a></li><li><a href=\"#log\">Log</a></li></ul></nav>\n</header>\n");
}

/// Says how a server is that is on a host of its own.
fn apart(html: &mut Html, name: &str, is_there: bool) {
    html.raw(if is_there { "<p>" } else { "<p class=\"wrong\">" }).text(name);
    html.raw(" is on a host of its own, and ");
    html.raw(if is_there { "there.</p>\n" } else { "not there now.</p>\n" });
}

fn question(html: &mut Html, overview: &Overview, policy: &Policy, form: &Form) {
    html.raw("<section id=\"ask\" aria-labelledby=\"ask-h\">\n<h2 id=\"ask-h\">May one node reach another?</h2>\n");
    html.raw("<form method=\"get\" action=\"/#ask\">\n");
    html.raw("<p><label for=\"from\">From</label><input id=\"from\" name=\"from\" list=\"names\" maxlength=\"63\" autocapitalize=\"none\" autocomplete=\"off\" spellcheck=\"false\" required value=\"");
    html.text(&form.from).raw("\"></p>\n");
    html.raw("<p><label for=\"to\">To</label><input id=\"to\" name=\"to\" list=\"names\" maxlength=\"63\" autocapitalize=\"none\" autocomplete=\"off\" spellcheck=\"false\" required value=\"");
    html.text(&form.to).raw("\"></p>\n");
    html.raw("<p><label for=\"port\">Port, such as tcp/22, or icmp</label><input id=\"port\" name=\"port\" maxlength=\"32\" autocapitalize=\"none\" autocomplete=\"off\" spellcheck=\"false\" required value=\"");
    html.text(&form.port).raw("\"></p>\n<p><button>Ask</button></p>\n<datalist id=\"names\">");
    for node in &overview.nodes {
        html.raw("<option value=\"").text(&node.name).raw("\">");
    }
    html.raw("</datalist>\n</form>\n");
    if !form.is_empty() {
        match Verdict::of(policy, &overview.nodes, form) {
            Err(what) => {
                html.raw("<p class=\"wrong\" role=\"status\">").text(what).raw("</p>\n");
            }
            Ok(verdict) => {
                let (yes, no) =
                    ("<div class=\"yes\" role=\"status\">", "<div class=\"no\" role=\"status\">");
                html.raw(if verdict.may { yes } else { no })
                    .raw("<p><strong>")
                    .text(verdict.answer);
                html.raw("</strong></p>\n<ul>");
                for line in verdict.because {
                    html.raw("<li>").text(line).raw("</li>");
                }
                html.raw("</ul></div>\n");
            }
        }
    }
    html.raw("</section>\n");
}

/// Who reaches whom now, and who may: a row begins something with a column.
fn square(html: &mut Html, overview: &Overview, policy: &Policy) {
    html.raw(
        "<section id=\"whom\" aria-labelledby=\"whom-h\">\n<h2 id=\"whom-h\">Who with whom</h2>\n",
    );
    let names = shown(overview);
    if names.is_empty() {
        html.raw("<p>There are no nodes yet: <code>tamis-cloud enrol NAME</code> makes a one-time key.</p>\n</section>\n");
        return;
    }
    html.raw("<p>A row begins something with a column: by the way that they have now, or because a line of the policy lets it.</p>\n");
    table(html, "Table of who reaches whom");
    html.raw("<thead><tr><th scope=\"col\">Node</th>");
    for name in &names {
        html.raw("<th scope=\"col\">").text(name).raw("</th>");
    }
    html.raw("</tr></thead>\n<tbody>");
    for from in &names {
        html.raw("<tr><th scope=\"row\">").text(from).raw("</th>");
        for to in &names {
            cell(html, overview, policy, [from, to]);
        }
        html.raw("</tr>\n");
    }
    html.raw("</tbody></table></div>\n");
    let left = overview.node_count.saturating_sub(names.len());
    if left > 0 {
        html.raw("<p>").text(number(left as u64)).raw(" more nodes are not in this table.</p>\n");
    }
    html.raw("</section>\n");
}

/// The nodes of the square: those with paths, then others that are there.
fn shown(overview: &Overview) -> Vec<&String> {
    let ends: HashSet<&String> = overview.paths.iter().flat_map(|path| &path.nodes).collect();
    let has_path = |node: &&Node| ends.contains(&node.name);
    let nodes = overview.nodes.iter().filter(|node| node.state != State::Revoked);
    let (with, without): (Vec<&Node>, Vec<&Node>) = nodes.partition(has_path);
    let mut all: Vec<&Node> = with.into_iter().chain(without).take(SQUARE).collect();
    all.sort_by(|one, other| one.name.cmp(&other.name));
    all.into_iter().map(|node| &node.name).collect()
}

fn cell(html: &mut Html, overview: &Overview, policy: &Policy, [from, to]: [&String; 2]) {
    if from == to {
        html.raw("<td class=\"self\">–</td>");
        return;
    }
    let permits = from.parse().ok().zip(to.parse().ok());
    let permits = permits.map(|(from, to): (Name, Name)| policy.permits(&from, &to));
    let may = permits.is_some_and(|permits| permits.lines.iter().any(|line| line.outward));
    let is_of = |path: &&Path| path.nodes.contains(from) && path.nodes.contains(to);
    let path = overview.paths.iter().find(is_of);
    match (may, path) {
        (false, _) => html.raw("<td class=\"denied\">may not</td>"),
        (true, None) => html.raw("<td class=\"may\">may</td>"),
        (true, Some(path)) => {
            let side = usize::from(path.nodes[0] != *from);
            let (class, way) = way(path.said[side].or(path.said[1 - side]));
            html.raw("<td class=\"").raw(class).raw("\">").text(way).raw("</td>")
        }
    };
}

/// A way as one of its nodes has said it is: its class, and the words.
fn way(said: Option<(bool, Option<u32>)>) -> (&'static str, String) {
    let Some((is_direct, micros)) = said else { return ("unsaid", "not said".to_owned()) };
    let (class, way) = if is_direct { ("direct", "direct") } else { ("relay", "relay") };
    match micros {
        Some(micros) => (class, format!("{way}, {}", millis(micros))),
        None => (class, way.to_owned()),
    }
}

fn millis(micros: u32) -> String {
    let millis = f64::from(micros) / 1_000.0;
    if millis < 10.0 { format!("{millis:.1} ms") } else { format!("{millis:.0} ms") }
}

fn nodes(html: &mut Html, overview: &Overview) {
    html.raw("<section id=\"nodes\" aria-labelledby=\"nodes-h\">\n<h2 id=\"nodes-h\">Nodes</h2>\n");
    table(html, "Table of nodes");
    html.raw("<thead><tr><th scope=\"col\">Name</th><th scope=\"col\">State</th><th scope=\"col\">Virtual addresses</th>");
    html.raw("<th scope=\"col\">Seen at</th><th scope=\"col\">Its router gives</th></tr></thead>\n<tbody>");
    for node in &overview.nodes {
        html.raw("<tr><th scope=\"row\">").text(&node.name).raw("</th><td class=\"");
        html.raw(match node.state {
            State::Present => "direct\">there",
            State::Absent => "unsaid\">not there",
            State::Revoked => "denied\">revoked",
        });
        html.raw("</td><td>").text(&node.v4).raw("<br>").text(&node.v6).raw("</td><td>");
        html.text(node.at.as_deref().unwrap_or("–")).raw("</td><td>").text(&node.router);
        html.raw("</td></tr>\n");
    }
    html.raw("</tbody></table></div>\n");
    more(
        html,
        overview.node_count,
        overview.nodes.len(),
        "more nodes: tamis-cloud devices lists all",
    );
    html.raw("</section>\n");
}

fn paths(html: &mut Html, overview: &Overview) {
    html.raw("<section id=\"paths\" aria-labelledby=\"paths-h\">\n<h2 id=\"paths-h\">Paths</h2>\n");
    html.raw("<p>Ways and round trips are the nodes' own word of the last minute.</p>\n");
    table(html, "Table of paths");
    html.raw("<thead><tr><th scope=\"col\">Nodes</th><th scope=\"col\">First says</th><th scope=\"col\">Second says</th>");
    html.raw("<th scope=\"col\" class=\"n\">Datagrams by the relay</th><th scope=\"col\" class=\"n\">Bytes</th><th scope=\"col\" class=\"n\">Asked for</th></tr></thead>\n<tbody>");
    for path in &overview.paths {
        html.raw("<tr><th scope=\"row\">")
            .text(&path.nodes[0])
            .raw(" – ")
            .text(&path.nodes[1])
            .raw("</th>");
        for said in path.said {
            let (class, way) = way(said);
            html.raw("<td class=\"").raw(class).raw("\">").text(way).raw("</td>");
        }
        let relayed = |of: fn(&(u64, u64)) -> u64| {
            path.relayed.as_ref().map_or("–".to_owned(), |both| number(of(both)))
        };
        html.raw("<td class=\"n\">").text(relayed(|it| it.0)).raw("</td><td class=\"n\">");
        html.text(relayed(|it| it.1)).raw("</td><td class=\"n\">");
        html.text(
            path.asked.map_or("before".to_owned(), |seconds| format!("{} s ago", number(seconds))),
        );
        html.raw("</td></tr>\n");
    }
    html.raw("</tbody></table></div>\n");
    more(
        html,
        overview.path_count,
        overview.paths.len(),
        "more paths, with fewer bytes by the relay",
    );
    html.raw("</section>\n");
}

fn written(html: &mut Html, overview: &Overview) {
    html.raw("<section id=\"policy\" aria-labelledby=\"policy-h\">\n<h2 id=\"policy-h\">Policy, version ");
    html.text(overview.policy_version).raw("</h2>\n<p>What no line allows is denied. <code>tamis-cloud policy</code> prints and changes it.</p>\n");
    html.raw("<div class=\"wide\" role=\"region\" aria-label=\"The text of the policy\" tabindex=\"0\"><pre>");
    for line in overview.policy.lines() {
        html.text(line).raw("\n");
    }
    html.raw("</pre></div>\n</section>\n");
}

fn log(html: &mut Html, overview: &Overview) {
    html.raw("<section id=\"log\" aria-labelledby=\"log-h\">\n<h2 id=\"log-h\">Log</h2>\n");
    html.raw("<p>The newest first; <code>tamis-cloud log</code> prints all that is kept.</p>\n<ol class=\"log\">\n");
    for line in overview.log.iter().rev() {
        let (time, what) = line.split_once(' ').unwrap_or(("", line));
        html.raw(if what.starts_with("alarm") {
            "<li class=\"alarm\"><time>"
        } else {
            "<li><time>"
        });
        html.text(time).raw("</time> <span>").text(what).raw("</span></li>\n");
    }
    html.raw("</ol>\n</section>\n");
}

/// Begins a table that is scrolled where it is wider than the screen, also by keys.
fn table(html: &mut Html, what: &'static str) {
    html.raw("<div class=\"wide\" role=\"region\" aria-label=\"")
        .raw(what)
        .raw("\" tabindex=\"0\"><table>\n");
}

fn more(html: &mut Html, all: usize, shown: usize, what: &'static str) {
    if all > shown {
        html.raw("<p>").text(number((all - shown) as u64)).raw(" ").raw(what).raw("</p>\n");
    }
}

/// A number with a comma after each three digits.
fn number(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
