package config

import (
	"errors"
	"fmt"
	"strings"
)

// expand replaces ${VAR} and ${VAR:-default} in the text of a scalar, where $$ is
// a literal $ and any other $ is kept. The default also takes the place
// of an empty variable, as in a shell. changed reports that a variable was replaced.
// The errors name variables, never their values.
func expand(text string, env func(string) (string, bool)) (out string, changed bool, err error) {
	if !strings.Contains(text, "$") {
		return text, false, nil
	}
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, "$")
		b.WriteString(before)
		if !found {
			return b.String(), changed, nil
		}
		switch {
		case strings.HasPrefix(after, "$"):
			b.WriteByte('$')
			text = after[1:]
		case strings.HasPrefix(after, "{"):
			inner, rest, closed := strings.Cut(after[1:], "}")
			if !closed {
				return "", changed, errVariable
			}
			value, err := lookup(inner, env)
			if err != nil {
				return "", changed, err
			}
			b.WriteString(value)
			text, changed = rest, true
		default:
			b.WriteByte('$')
			text = after
		}
	}
}

// errVariable does not quote the text: it may be part of a password.
var errVariable = errors.New("${ is not followed by a variable: write ${NAME}, ${NAME:-default}, or $${ for a literal ${")

func lookup(inner string, env func(string) (string, bool)) (string, error) {
	name, def, hasDefault := strings.Cut(inner, ":-")
	if !isVariable(name) {
		return "", errVariable
	}
	value, set := "", false
	if env != nil {
		value, set = env(name)
	}
	switch {
	case hasDefault && value == "":
		return def, nil
	case !set:
		return "", fmt.Errorf("variable %s is not set", name)
	}
	return value, nil
}

// isVariable reports whether s is a name as shells have them.
func isVariable(s string) bool {
	for i, c := range []byte(s) {
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}
