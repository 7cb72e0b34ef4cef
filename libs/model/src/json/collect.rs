//! Arrays and objects, written element by element as serde delivers them.

use std::borrow::Cow;
use std::ops::Range;

use serde::ser::{self, Serialize};

use super::serialize::{Writer, to_canonical};
use super::{Fault, Json, JsonError};

pub(super) struct Items<'a> {
    out: &'a mut String,
    depth: usize,
    count: usize,
    close: &'static str,
}

impl<'a> Items<'a> {
    pub(super) fn new(inner: Writer<'a>, close: &'static str) -> Items<'a> {
        Items {
            out: inner.out,
            depth: inner.depth,
            count: 0,
            close,
        }
    }

    fn push<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), JsonError> {
        if self.count > 0 {
            self.out.push(',');
        }
        let writer = Writer {
            out: self.out,
            depth: self.depth,
        };
        value
            .serialize(writer)
            .map_err(|e| e.inside(format_args!("[{}]", self.count)))?;
        self.count += 1;
        Ok(())
    }

    fn finish(self) -> Result<(), JsonError> {
        self.out.push_str(self.close);
        Ok(())
    }
}

/// Writes members in the order of arrival and sorts them at the end if that order was wrong.
pub(super) struct Members<'a> {
    out: &'a mut String,
    depth: usize,
    start: usize,
    members: Vec<Member>,
    key: Cow<'static, str>,
    close: &'static str,
}

struct Member {
    key: Cow<'static, str>,
    /// The range of `"key":value`, counted from the start of the object.
    written: Range<usize>,
}

impl<'a> Members<'a> {
    pub(super) fn new(inner: Writer<'a>, close: &'static str) -> Members<'a> {
        let start = inner.out.len();
        Members {
            out: inner.out,
            depth: inner.depth,
            start,
            members: Vec::new(),
            key: Cow::default(),
            close,
        }
    }

    fn insert<T: Serialize + ?Sized>(
        &mut self,
        key: Cow<'static, str>,
        value: &T,
    ) -> Result<(), JsonError> {
        if !self.members.is_empty() {
            self.out.push(',');
        }
        let begin = self.out.len() - self.start;
        self.writer().text(&key)?;
        self.out.push(':');
        value
            .serialize(self.writer())
            .map_err(|e| e.inside(format_args!(".{key}")))?;
        self.members.push(Member {
            key,
            written: begin..self.out.len() - self.start,
        });
        Ok(())
    }

    fn writer(&mut self) -> Writer<'_> {
        Writer {
            out: self.out,
            depth: self.depth,
        }
    }

    fn finish(mut self) -> Result<(), JsonError> {
        if !self.members.is_sorted_by(|a, b| a.key < b.key) {
            self.sort()?;
        }
        self.out.push_str(self.close);
        Ok(())
    }

    fn sort(&mut self) -> Result<(), JsonError> {
        self.members.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        if let Some(pair) = self
            .members
            .windows(2)
            .find(|pair| pair[0].key == pair[1].key)
        {
            return Err(Fault::RepeatedKey(pair[0].key.to_string()).into());
        }
        let unsorted = self.out.split_off(self.start);
        for (index, member) in self.members.iter().enumerate() {
            if index > 0 {
                self.out.push(',');
            }
            self.out.push_str(&unsorted[member.written.clone()]);
        }
        Ok(())
    }
}

macro_rules! collects_items {
    ($($trait:ident::$method:ident),+) => {
        $(impl ser::$trait for Items<'_> {
            type Ok = ();
            type Error = JsonError;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), JsonError> {
                self.push(value)
            }

            fn end(self) -> Result<(), JsonError> {
                self.finish()
            }
        })+
    };
}

collects_items! {
    SerializeSeq::serialize_element,
    SerializeTuple::serialize_element,
    SerializeTupleStruct::serialize_field,
    SerializeTupleVariant::serialize_field
}

macro_rules! collects_fields {
    ($($trait:ident),+) => {
        $(impl ser::$trait for Members<'_> {
            type Ok = ();
            type Error = JsonError;

            fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), JsonError> {
                self.insert(Cow::Borrowed(key), value)
            }

            fn end(self) -> Result<(), JsonError> {
                self.finish()
            }
        })+
    };
}

collects_fields!(SerializeStruct, SerializeStructVariant);

impl ser::SerializeMap for Members<'_> {
    type Ok = ();
    type Error = JsonError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), JsonError> {
        let Json::Text(key) = Json::parse(&to_canonical(key)?)? else {
            return Err(Fault::KeyNotText.into());
        };
        self.key = Cow::Owned(key);
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), JsonError> {
        let key = std::mem::take(&mut self.key);
        self.insert(key, value)
    }

    fn end(self) -> Result<(), JsonError> {
        self.finish()
    }
}
