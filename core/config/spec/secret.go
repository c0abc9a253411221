package spec

import (
	"fmt"
	"io"
)

const redacted = "[redacted]"

// Secret is a text that does not print: every fmt verb, slog, JSON, YAML and
// text encoding print [redacted], or nothing when it is empty. Reveal returns the
// text itself.
//
// The text is behind a pointer because methods are not enough: fmt calls none
// for a value in an unexported field, nor for a verb that does not fit (%p), and
// would print a string as it is.
type Secret struct{ text *string }

// NewSecret returns a secret with the text.
func NewSecret(text string) Secret { return Secret{&text} }

// Reveal returns the text.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// Equal reports whether both have the same text.
func (s Secret) Equal(o Secret) bool { return s.Reveal() == o.Reveal() }

// String returns [redacted], or "" when there is nothing to redact.
func (s Secret) String() string {
	if s.Reveal() == "" {
		return ""
	}
	return redacted
}

// Format prints String for every verb, %x and %d among them.
func (s Secret) Format(f fmt.State, verb rune) {
	format := "%s"
	if verb == 'q' || verb == 'v' && f.Flag('#') {
		format = "%q"
	}
	_, _ = io.WriteString(f, fmt.Sprintf(format, s.String()))
}

// MarshalText encodes String; JSON and YAML follow it.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
