//! One page of Markdown: where its links lead, and which anchors its headings make.

use std::collections::HashMap;
use std::collections::HashSet;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// What is read of a page.
pub(crate) struct Page {
    pub(crate) links: Vec<Link>,
    pub(crate) anchors: HashSet<String>,
}

/// A link or an image, as it is written.
pub(crate) struct Link {
    /// From 1.
    pub(crate) line: usize,
    pub(crate) to: String,
}

impl Page {
    pub(crate) fn read(text: &str) -> Self {
        let (mut page, mut heading) = (Page { links: Vec::new(), anchors: HashSet::new() }, None);
        let mut taken = HashMap::new();
        let options = Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES;
        for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
            match event {
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    let line = text[..range.start].matches('\n').count() + 1;
                    page.links.push(Link { line, to: dest_url.into_string() });
                }
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => {
                    let anchor = anchor(&heading.take().unwrap_or_default());
                    let before: &mut usize = taken.entry(anchor.clone()).or_default();
                    page.anchors.insert(match *before {
                        0 => anchor,
                        before => format!("{anchor}-{before}"),
                    });
                    *before += 1;
                }
                Event::Text(words) | Event::Code(words) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&words);
                    }
                }
                _ => {}
            }
        }
        page
    }
}

/// The anchor of a heading, as mdBook and code hosts make it.
fn anchor(heading: &str) -> String {
    heading
        .chars()
        .filter_map(|letter| match letter {
            ' ' => Some('-'),
            letter if letter.is_alphanumeric() || "-_".contains(letter) => Some(letter),
            _ => None,
        })
        .flat_map(char::to_lowercase)
        .collect()
}
