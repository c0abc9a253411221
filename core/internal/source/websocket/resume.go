package websocket

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// placeholder matches {{event_index}} in Settings.Resume: the JSON value that this field
// of a message had last.
var placeholder = regexp.MustCompile(`\{\{([^{}]*)\}\}`)

// resumption continues a stream on the next connection.
type resumption struct {
	text   string // empty: the stream is not resumed
	fields []string
}

func newResumption(text string) (r resumption, err error) {
	if text == "" {
		return r, nil
	}
	r.text = text
	for _, m := range placeholder.FindAllStringSubmatch(text, -1) {
		if m[1] == "" {
			return r, errors.New("{{}} names no field")
		}
		r.fields = append(r.fields, m[1])
	}
	if len(r.fields) == 0 {
		return r, errors.New("no {{field}} in it names where to resume")
	}
	slices.Sort(r.fields)
	r.fields = slices.Compact(r.fields)
	return r, nil
}

// maxField is the longest value of a field that is kept.
const maxField = 1 << 10

// note keeps the values of the fields of a message, if it is a JSON object. It reports whether
// any of them has changed.
func (r *resumption) note(seen map[string]json.RawMessage, message []byte) (changed bool) {
	var object map[string]json.RawMessage
	if r.text == "" || json.Unmarshal(message, &object) != nil {
		return false
	}
	for _, name := range r.fields {
		v, ok := object[name]
		if !ok || string(v) == "null" || len(v) > maxField || string(v) == string(seen[name]) {
			continue
		}
		seen[name], changed = v, true
	}
	return changed
}

// message returns the message that resumes the stream; ok is false while a field has no
// value.
func (r *resumption) message(seen map[string]json.RawMessage) (text string, ok bool) {
	if r.text == "" {
		return "", false
	}
	for _, name := range r.fields {
		if len(seen[name]) == 0 {
			return "", false
		}
	}
	return placeholder.ReplaceAllStringFunc(r.text, func(m string) string { return string(seen[strings.Trim(m, "{}")]) }), true
}

// seen returns the values in the State of a recording.
func (r *resumption) seen(state []byte) (map[string]json.RawMessage, error) {
	out := make(map[string]json.RawMessage)
	if r.text == "" || len(state) == 0 {
		return out, nil
	}
	var s struct {
		Seen map[string]json.RawMessage `json:"seen"`
	}
	if err := json.Unmarshal(state, &s); err != nil {
		return out, fmt.Errorf("state: %w", err)
	}
	maps.Copy(out, s.Seen)
	return out, nil
}
