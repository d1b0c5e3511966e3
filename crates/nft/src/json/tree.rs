//! A document of JSON, its members in their order.

use std::fmt;

use serde_json::de::Deserializer;

/// A value of JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Json {
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// A whole number.
    Number(i128),
    /// A string.
    Text(String),
    /// A list.
    List(Vec<Json>),
    /// An object, its members in their order.
    Object(Vec<(Box<str>, Json)>),
}

impl Json {
    /// Reads a document; nesting is bounded.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut from = Deserializer::from_str(text);
        let value: Self =
            serde::Deserialize::deserialize(&mut from).map_err(|error| error.to_string())?;
        from.end().map_err(|error| error.to_string())?;
        Ok(value)
    }

    /// Makes an object.
    pub fn object(members: Vec<(&str, Self)>) -> Self {
        Self::Object(members.into_iter().map(|(name, value)| (name.into(), value)).collect())
    }

    /// Makes a string.
    pub fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    /// Makes a number.
    pub fn of(value: impl Into<i128>) -> Self {
        Self::Number(value.into())
    }

    /// Makes a list of what `show` says of each.
    pub fn each<T>(of: &[T], show: impl FnMut(&T) -> Self) -> Self {
        Self::List(of.iter().map(show).collect())
    }

    /// Makes a list, of one element the element: so nft 1.1.4 and later write flags.
    pub fn few(mut list: Vec<Self>) -> Self {
        if list.len() == 1 { list.remove(0) } else { Self::List(list) }
    }

    /// Takes the element of a list that has one.
    pub fn single(self) -> Self {
        match self {
            Self::List(list) => Self::few(list),
            other => other,
        }
    }

    /// Makes null of an object without members.
    pub fn or_null(self) -> Self {
        if matches!(&self, Self::Object(members) if members.is_empty()) { Self::Null } else { self }
    }

    /// Returns a member.
    pub fn get(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Object(members) => {
                members.iter().find(|member| &*member.0 == name).map(|member| &member.1)
            }
            _ => None,
        }
    }

    /// Returns the member of an object that has one.
    pub fn one(&self) -> Option<(&str, &Self)> {
        match self {
            Self::Object(members) if members.len() == 1 => Some((&members[0].0, &members[0].1)),
            _ => None,
        }
    }

    /// Adds the members of another object.
    pub fn merge(&mut self, other: Self) {
        if let (Self::Object(members), Self::Object(more)) = (self, other) {
            members.extend(more);
        }
    }

    /// Returns the text of a string.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns a number, also one in a string.
    pub fn as_number(&self) -> Option<i128> {
        match self {
            Self::Number(value) => Some(*value),
            Self::Text(text) => number(text).map(u128::cast_signed),
            _ => None,
        }
    }

    /// Says whether a member is true.
    pub fn is_true(&self, name: &str) -> bool {
        self.get(name) == Some(&Self::Bool(true))
    }

    /// Says whether it is an object.
    pub fn is_object(&self) -> bool {
        matches!(self, Self::Object(_))
    }

    /// Returns the elements of a list; another value is a list of itself.
    pub fn items(&self) -> &[Self] {
        match self {
            Self::List(list) => list,
            other => std::slice::from_ref(other),
        }
    }

    /// Spells it on one line, as nft does.
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) {
        match self {
            Self::Null => out.push_str("null"),
            Self::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Self::Number(value) => out.push_str(&value.to_string()),
            Self::Text(text) => string(out, text),
            Self::List(list) => {
                out.push('[');
                for (at, value) in list.iter().enumerate() {
                    out.push_str(if at == 0 { "" } else { ", " });
                    value.write(out);
                }
                out.push(']');
            }
            Self::Object(members) => {
                out.push('{');
                for (at, (name, value)) in members.iter().enumerate() {
                    out.push_str(if at == 0 { "" } else { ", " });
                    string(out, name);
                    out.push_str(": ");
                    value.write(out);
                }
                out.push('}');
            }
        }
    }
}

fn string(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if u32::from(c) < 0x20 => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}

/// Reads a small number that a member is.
pub fn member(body: &Json, name: &str) -> Option<u32> {
    integer(body.get(name)?)
}

/// Reads a number that fits, also one in a string.
pub fn integer<T: TryFrom<i128>>(json: &Json) -> Option<T> {
    json.as_number().and_then(|value| T::try_from(value).ok())
}

/// Reads a decimal or hexadecimal number.
pub fn number(word: &str) -> Option<u128> {
    match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        Some(digits) if !digits.starts_with('+') => u128::from_str_radix(digits, 16).ok(),
        _ if word.starts_with('+') => None,
        _ => word.parse().ok(),
    }
}

struct Visitor;

impl<'de> serde::de::Visitor<'de> for Visitor {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value without fractions")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Number(i128::from(value)))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Number(i128::from(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(Json::text(value))
    }

    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut from: A) -> Result<Json, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = from.next_element()? {
            list.push(value);
        }
        Ok(Json::List(list))
    }

    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut from: A) -> Result<Json, A::Error> {
        let mut members = Vec::new();
        while let Some((name, value)) = from.next_entry::<String, Json>()? {
            members.push((name.into_boxed_str(), value));
        }
        Ok(Json::Object(members))
    }
}

impl<'de> serde::Deserialize<'de> for Json {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Visitor)
    }
}
