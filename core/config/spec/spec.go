// Package spec has the types with which a source or an exporter describes its configuration.
//
// A component has a struct whose fields are its keys: the tag is the key's name in the
// file, the comment its text in config.example.yaml, the type how a value is read and
// checked (Duration, Size, Secret, ...). Its package has a Type that makes the struct
// with its defaults, and a constructor. core/config reads the file; it gets the
// Types as a list and knows no component by name.
package spec

// Section is a struct that a mapping of the file is read into.
type Section interface {
	// Validate reports every value that is wrong by the file alone.
	Validate(*Check)
}

// Defaults is a Section, or a part of one, whose keys have defaults.
type Defaults interface{ SetDefaults() }

// Resolver is a Section with defaults that depend on other keys. Resolve fills them in
// after the file was read and before Validate.
type Resolver interface{ Resolve() }

// Listening is a Section that names addresses to listen on: by key, such as listen.
type Listening interface{ ListenAddresses() map[string]string }

// Routing is a Section of a source whose traffic has formats of its own, beside or
// instead of the key format of the source, which is own and may be empty.
type Routing interface {
	RoutedFormats(own string) []string
}

// Type is a type of source or exporter.
type Type struct {
	Name string // in the file
	// Doc is the comment of the section, of a type that is a key of its own.
	Doc string
	// New returns a section with the defaults.
	New func() Section
	// Several means that the key NAME-x is another exporter of the type, for every x.
	Several bool
	// Example is the type in config.example.yaml.
	Example Example
}

// Example shows a type. The keys that On has and Off does not are written behind a #.
type Example struct {
	Name, Format string // of a source
	Off, On      func(Section)
}

// A field of a struct is a key when it has the tag
//
//	yaml:"name"
//
// and a string, or a list of strings, is a path of the file system when it has the tag
//
//	kind:"path"
//
// as well: a relative one is relative to the folder of the file, and a leading ~ is the
// home directory.
const (
	KeyTag  = "yaml"
	KindTag = "kind"
	Path    = "path"
)

// ExampleHeaders are the headers of an example: a token from the environment.
func ExampleHeaders() Headers {
	return Headers{"Authorization": NewSecret("Bearer ${AGENT_TOKEN:-}")}
}
