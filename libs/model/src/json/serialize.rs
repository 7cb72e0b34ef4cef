//! Writes any serde value in its canonical form and rejects the same values as the parser.
//!
//! `serde_json` is not used because it turns NaN into null and keeps the last of two equal keys.

use std::fmt::{self, Write};

use serde::ser::{self, Serialize, Serializer};

use super::collect::{Items, Members};
use super::write::write_text;
use super::{Fault, Integer, JsonError};
use crate::limits::JSON_DEPTH_MAX;

pub(super) fn to_canonical<T: Serialize + ?Sized>(value: &T) -> Result<String, JsonError> {
    let mut out = String::new();
    value.serialize(Writer {
        out: &mut out,
        depth: 0,
    })?;
    Ok(out)
}

impl ser::Error for JsonError {
    fn custom<T: fmt::Display>(message: T) -> JsonError {
        Fault::Custom(message.to_string()).into()
    }
}

/// Appends one value to `out`. `depth` is the number of enclosing arrays and objects.
pub(super) struct Writer<'a> {
    pub(super) out: &'a mut String,
    pub(super) depth: usize,
}

impl<'a> Writer<'a> {
    fn plain(self, text: &str) -> Result<(), JsonError> {
        self.out.push_str(text);
        Ok(())
    }

    pub(super) fn text(self, text: &str) -> Result<(), JsonError> {
        write_text(self.out, text).map_err(ser::Error::custom)
    }

    fn integer(self, value: Option<i128>) -> Result<(), JsonError> {
        let Some(Integer(value)) = value.and_then(Integer::new) else {
            return Err(Fault::IntegerRange.into());
        };
        write!(self.out, "{value}").map_err(ser::Error::custom)
    }

    /// Opens a bracket and returns a writer for its content, one level deeper.
    fn open(self, bracket: &str) -> Result<Writer<'a>, JsonError> {
        if self.depth >= JSON_DEPTH_MAX {
            return Err(Fault::TooDeep.into());
        }
        self.out.push_str(bracket);
        Ok(Writer {
            out: self.out,
            depth: self.depth + 1,
        })
    }

    /// Begins `{"Variant":`, the externally tagged form of an enum variant.
    fn variant(self, variant: &str) -> Result<Writer<'a>, JsonError> {
        let inner = self.open("{")?;
        Writer {
            out: &mut *inner.out,
            depth: inner.depth,
        }
        .text(variant)?;
        inner.out.push(':');
        Ok(inner)
    }
}

macro_rules! integers {
    ($($method:ident: $type:ty),+) => {
        $(fn $method(self, value: $type) -> Result<(), JsonError> {
            self.integer(i128::try_from(value).ok())
        })+
    };
}

impl<'a> Serializer for Writer<'a> {
    type Ok = ();
    type Error = JsonError;
    type SerializeSeq = Items<'a>;
    type SerializeTuple = Items<'a>;
    type SerializeTupleStruct = Items<'a>;
    type SerializeTupleVariant = Items<'a>;
    type SerializeMap = Members<'a>;
    type SerializeStruct = Members<'a>;
    type SerializeStructVariant = Members<'a>;

    integers! {
        serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64, serialize_i128: i128,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64, serialize_u128: u128
    }

    fn serialize_f32(self, _: f32) -> Result<(), JsonError> {
        Err(Fault::Float.into())
    }

    fn serialize_f64(self, _: f64) -> Result<(), JsonError> {
        Err(Fault::Float.into())
    }

    fn serialize_bool(self, value: bool) -> Result<(), JsonError> {
        self.plain(if value { "true" } else { "false" })
    }

    fn serialize_char(self, value: char) -> Result<(), JsonError> {
        self.text(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Result<(), JsonError> {
        self.text(value)
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Result<(), JsonError> {
        bytes.serialize(self)
    }

    fn serialize_none(self) -> Result<(), JsonError> {
        self.plain("null")
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), JsonError> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), JsonError> {
        self.plain("null")
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), JsonError> {
        self.plain("null")
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<(), JsonError> {
        self.text(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), JsonError> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), JsonError> {
        let inner = self.variant(variant)?;
        value.serialize(Writer {
            out: &mut *inner.out,
            depth: inner.depth,
        })?;
        inner.plain("}")
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Items<'a>, JsonError> {
        Ok(Items::new(self.open("[")?, "]"))
    }

    fn serialize_tuple(self, _: usize) -> Result<Items<'a>, JsonError> {
        self.serialize_seq(None)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Items<'a>, JsonError> {
        self.serialize_seq(None)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Items<'a>, JsonError> {
        Ok(Items::new(self.variant(variant)?.open("[")?, "]}"))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Members<'a>, JsonError> {
        Ok(Members::new(self.open("{")?, "}"))
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Members<'a>, JsonError> {
        self.serialize_map(None)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Members<'a>, JsonError> {
        Ok(Members::new(self.variant(variant)?.open("{")?, "}}"))
    }
}
