//! Closed lists: enums with a small number for rows and a name for people, both fixed for good.

/// What a text is not, and what it could have been.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not a {list}; it is one of {}", .names.join(", "))]
pub struct UnknownName {
    pub list: &'static str,
    pub given: String,
    pub names: Vec<&'static str>,
}

/// A list whose items can be enumerated and explain themselves, for generated pages and tests over all of them.
pub trait Listed: Copy + Eq + std::fmt::Display + std::fmt::Debug + 'static {
    const ITEMS: &'static [Self];

    /// What it means, in a sentence.
    fn about(self) -> &'static str;
}

/// Writes the enum and everything that follows from its list: `ALL`, `code`, `from_code`, `name`, [`Listed`],
/// `Display`, `FromStr`, serde.
macro_rules! closed_list {
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

            /// The number that rows and messages hold.
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

        impl $crate::closed::Listed for $list {
            const ITEMS: &'static [$list] = $list::ALL;

            fn about(self) -> &'static str {
                match self { $($list::$item => concat!($($about),+)),+ }.trim()
            }
        }

        impl std::fmt::Display for $list {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }

        impl std::str::FromStr for $list {
            type Err = $crate::closed::UnknownName;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                $list::ALL.iter().copied().find(|item| item.name() == text).ok_or_else(|| {
                    $crate::closed::UnknownName {
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
pub(crate) use closed_list;
