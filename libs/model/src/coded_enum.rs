//! Enums with a stable number for rows and a stable name for people.

/// A text that is not a name of the enum, with the names that are.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not a {list}; it is one of {}", .names.join(", "))]
pub struct UnknownName {
    pub list: &'static str,
    pub given: String,
    pub names: Vec<&'static str>,
}

/// An enum whose variants can be enumerated and described, for generated pages and for tests over
/// all variants.
pub trait DocumentedEnum: Copy + Eq + std::fmt::Display + std::fmt::Debug + 'static {
    const VARIANTS: &'static [Self];

    /// Its meaning, in one sentence.
    fn description(self) -> &'static str;
}

/// Defines the enum and everything that follows from the list of its variants: `ALL`, `code`,
/// `from_code`, `name`, [`DocumentedEnum`], `Display`, `FromStr`, serde.
macro_rules! coded_enum {
    (
        $(#[$attr:meta])*
        $list:ident { $($(#[doc = $about:literal])+ $item:ident = $code:literal, $name:literal;)+ }
    ) => {
        $(#[$attr])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(i16)]
        pub enum $list { $($(#[doc = $about])+ $item = $code),+ }

        impl $list {
            pub const ALL: &'static [$list] = &[$($list::$item),+];

            /// The number that is stored in rows and messages.
            pub const fn code(self) -> i16 {
                self as i16
            }

            pub fn from_code(code: i16) -> Option<$list> {
                $list::ALL.iter().copied().find(|item| item.code() == code)
            }

            pub const fn name(self) -> &'static str {
                match self { $($list::$item => $name),+ }
            }
        }

        impl $crate::coded_enum::DocumentedEnum for $list {
            const VARIANTS: &'static [$list] = $list::ALL;

            fn description(self) -> &'static str {
                match self { $($list::$item => concat!($($about),+)),+ }.trim()
            }
        }

        impl std::fmt::Display for $list {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }

        impl std::str::FromStr for $list {
            type Err = $crate::coded_enum::UnknownName;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                $list::ALL.iter().copied().find(|item| item.name() == text).ok_or_else(|| {
                    $crate::coded_enum::UnknownName {
                        list: stringify!($list),
                        given: $crate::text::excerpt(text),
                        names: $list::ALL.iter().map(|item| item.name()).collect(),
                    }
                })
            }
        }

        $crate::text::written_as_text!($list);
    };
}
pub(crate) use coded_enum;
