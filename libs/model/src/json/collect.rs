//! The arrays and objects that [`ToJson`] builds up piece by piece.

use std::collections::BTreeMap;

use serde::ser::{self, Serialize};

use super::serialize::{ToJson, tagged};
use super::{Fault, Json, JsonError};

pub(super) struct Items {
    each: ToJson,
    items: Vec<Json>,
    variant: Option<&'static str>,
}

impl Items {
    pub(super) fn new(each: ToJson, variant: Option<&'static str>) -> Items {
        Items { each, items: Vec::new(), variant }
    }

    fn push<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), JsonError> {
        let index = self.items.len();
        self.items.push(value.serialize(self.each).map_err(|e| e.inside(format_args!("[{index}]")))?);
        Ok(())
    }

    fn finish(self) -> Result<Json, JsonError> {
        Ok(tagged(self.variant, Json::Array(self.items)))
    }
}

pub(super) struct Members {
    each: ToJson,
    members: BTreeMap<String, Json>,
    key: String,
    variant: Option<&'static str>,
}

impl Members {
    pub(super) fn new(each: ToJson, variant: Option<&'static str>) -> Members {
        Members { each, members: BTreeMap::new(), key: String::new(), variant }
    }

    fn insert<T: Serialize + ?Sized>(&mut self, key: String, value: &T) -> Result<(), JsonError> {
        let value = value.serialize(self.each).map_err(|e| e.inside(format_args!(".{key}")))?;
        if self.members.contains_key(&key) {
            return Err(Fault::RepeatedKey(key).into());
        }
        self.members.insert(key, value);
        Ok(())
    }

    fn finish(self) -> Result<Json, JsonError> {
        Ok(tagged(self.variant, Json::Object(self.members)))
    }
}

macro_rules! collects_items {
    ($($trait:ident::$method:ident),+) => {
        $(impl ser::$trait for Items {
            type Ok = Json;
            type Error = JsonError;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), JsonError> {
                self.push(value)
            }

            fn end(self) -> Result<Json, JsonError> {
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
        $(impl ser::$trait for Members {
            type Ok = Json;
            type Error = JsonError;

            fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), JsonError> {
                self.insert(key.to_owned(), value)
            }

            fn end(self) -> Result<Json, JsonError> {
                self.finish()
            }
        })+
    };
}

collects_fields!(SerializeStruct, SerializeStructVariant);

impl ser::SerializeMap for Members {
    type Ok = Json;
    type Error = JsonError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), JsonError> {
        let Json::Text(key) = key.serialize(self.each)? else {
            return Err(Fault::KeyNotText.into());
        };
        self.key = key;
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), JsonError> {
        let key = std::mem::take(&mut self.key);
        self.insert(key, value)
    }

    fn end(self) -> Result<Json, JsonError> {
        self.finish()
    }
}
