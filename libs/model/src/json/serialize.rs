//! Takes over any serde value, with the same refusals as the reader.
//!
//! Going through `serde_json::to_value` would turn a NaN into null and keep the last of two equal keys.

use std::collections::BTreeMap;
use std::fmt;

use serde::ser::{self, Serialize, Serializer};

use super::collect::{Items, Members};
use super::{Fault, Integer, Json, JsonError};
use crate::limits::JSON_DEPTH_MAX;

pub(super) fn to_json<T: Serialize + ?Sized>(value: &T) -> Result<Json, JsonError> {
    value.serialize(ToJson { depth: 0 })
}

impl ser::Error for JsonError {
    fn custom<T: fmt::Display>(message: T) -> JsonError {
        Fault::Custom(message.to_string()).into()
    }
}

/// `depth` counts the arrays and objects around the value.
#[derive(Clone, Copy)]
pub(super) struct ToJson {
    depth: usize,
}

impl ToJson {
    fn inner(self) -> Result<ToJson, JsonError> {
        if self.depth >= JSON_DEPTH_MAX {
            return Err(Fault::TooDeep.into());
        }
        Ok(ToJson { depth: self.depth + 1 })
    }

    fn items(self) -> Result<Items, JsonError> {
        Ok(Items::new(self.inner()?, None))
    }

    fn members(self) -> Result<Members, JsonError> {
        Ok(Members::new(self.inner()?, None))
    }
}

/// Wraps the content of an enum's variant as `{"Variant": content}`.
pub(super) fn tagged(variant: Option<&'static str>, content: Json) -> Json {
    match variant {
        None => content,
        Some(variant) => Json::Object(BTreeMap::from([(variant.to_owned(), content)])),
    }
}

macro_rules! integers {
    ($($method:ident: $type:ty),+) => {
        $(fn $method(self, value: $type) -> Result<Json, JsonError> {
            i128::try_from(value).ok().and_then(Integer::new).map(Json::Integer).ok_or(Fault::IntegerRange.into())
        })+
    };
}

impl Serializer for ToJson {
    type Ok = Json;
    type Error = JsonError;
    type SerializeSeq = Items;
    type SerializeTuple = Items;
    type SerializeTupleStruct = Items;
    type SerializeTupleVariant = Items;
    type SerializeMap = Members;
    type SerializeStruct = Members;
    type SerializeStructVariant = Members;

    integers! {
        serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64, serialize_i128: i128,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64, serialize_u128: u128
    }

    fn serialize_f32(self, _: f32) -> Result<Json, JsonError> {
        Err(Fault::Float.into())
    }

    fn serialize_f64(self, _: f64) -> Result<Json, JsonError> {
        Err(Fault::Float.into())
    }

    fn serialize_bool(self, value: bool) -> Result<Json, JsonError> {
        Ok(Json::Bool(value))
    }

    fn serialize_char(self, value: char) -> Result<Json, JsonError> {
        Ok(Json::Text(value.into()))
    }

    fn serialize_str(self, value: &str) -> Result<Json, JsonError> {
        Ok(Json::Text(value.to_owned()))
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Result<Json, JsonError> {
        bytes.serialize(self)
    }

    fn serialize_none(self) -> Result<Json, JsonError> {
        Ok(Json::Null)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Json, JsonError> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<Json, JsonError> {
        Ok(Json::Null)
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<Json, JsonError> {
        Ok(Json::Null)
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<Json, JsonError> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<Json, JsonError> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<Json, JsonError> {
        Ok(tagged(Some(variant), value.serialize(self.inner()?)?))
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Items, JsonError> {
        self.items()
    }

    fn serialize_tuple(self, _: usize) -> Result<Items, JsonError> {
        self.items()
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Items, JsonError> {
        self.items()
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Items, JsonError> {
        Ok(Items::new(self.inner()?.inner()?, Some(variant)))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Members, JsonError> {
        self.members()
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Members, JsonError> {
        self.members()
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Members, JsonError> {
        Ok(Members::new(self.inner()?.inner()?, Some(variant)))
    }
}
