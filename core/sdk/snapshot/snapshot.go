// Package snapshot writes and restores the state of a decoder from the state's type, so that
// a decoder has no code for either. Package record does both; a decoder of its own has
//
//	func (d *stream) Snapshot() ([]byte, error) { return snapshot.Of(stateVersion, &d.state) }
//	func (d *stream) Restore(b []byte) error    { return snapshot.Restore(stateVersion, b, &d.state) }
//
// The form is the JSON of the state, a struct whose fields have omitempty or omitzero, with
// the member Version before them. It follows from the state alone: encoding/json writes
// fields in the order of the type and keys of maps in theirs.
//
// The version rises when the type cannot read an older state, or a field has another
// meaning; a new field whose zero value is right for an older state needs no new version. A
// snapshot of another version, or a damaged one, is an error: the host then makes a new
// decoder and replays the stream from its beginning (see decoder.Snapshotter). The version
// is independent of Info.Revision, which rises when the same frames produce other messages:
// a stream continues from its snapshot under a new revision.
//
// A restored state has no nil pointer in a list or a map, which a decoder would follow.
package snapshot

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
)

// Of returns the snapshot of a state; nil when the state is the zero value, with which a new
// decoder begins.
func Of[S any](version int, state *S) ([]byte, error) {
	if reflect.ValueOf(state).Elem().IsZero() {
		return nil, nil
	}
	w := writer{version: version}
	if err := json.NewEncoder(&w).Encode(state); err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	return w.b, nil
}

// writer takes the JSON of a state, which an Encoder writes at once and with a newline, and
// puts the version before its members: one copy, as json.Marshal makes.
type writer struct {
	version int
	b       []byte
}

func (w *writer) Write(body []byte) (int, error) {
	members, ok := bytes.CutPrefix(body, []byte("{"))
	if !ok {
		return 0, errors.New("a state is a struct")
	}
	w.b = make([]byte, 0, len(head)+len(members)+len("12345,"))
	w.b = strconv.AppendInt(append(w.b, head...), int64(w.version), 10)
	if members[0] != '}' {
		w.b = append(w.b, ',')
	}
	w.b = append(w.b, members[:len(members)-1]...)
	return len(body), nil
}

const head = `{"Version":`

// Restore sets the state to that of a snapshot. The state is unchanged when the snapshot
// is of another version or cannot be read.
func Restore[S any](version int, b []byte, state *S) error {
	rest, ok := bytes.CutPrefix(b, []byte(head))
	end := bytes.IndexAny(rest, ",}")
	if !ok || end < 0 {
		return errors.New("snapshot: it has no version")
	}
	if got, want := string(rest[:end]), strconv.Itoa(version); got != want {
		return fmt.Errorf("snapshot: version %q, want %s", got, want)
	}
	var s S
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	if path := null(reflect.ValueOf(&s).Elem()); path != "" {
		return fmt.Errorf("snapshot: %s is null", path[1:])
	}
	*state = s
	return nil
}

// null returns the path of a nil pointer in a list or a map; "" when there is none.
func null(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Pointer:
		return null(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if below := null(v.Field(i)); below != "" {
				return "." + v.Type().Field(i).Name + below
			}
		}
	case reflect.Slice:
		if !holdsPointers(v.Type().Elem()) {
			return ""
		}
		for i := range v.Len() {
			if below, found := nullItem(v.Index(i)); found {
				return "[" + strconv.Itoa(i) + "]" + below
			}
		}
	case reflect.Map:
		if !holdsPointers(v.Type().Elem()) {
			return ""
		}
		for i := v.MapRange(); i.Next(); {
			if below, found := nullItem(i.Value()); found {
				return fmt.Sprintf("[%v]", i.Key()) + below
			}
		}
	}
	return ""
}

func nullItem(v reflect.Value) (below string, found bool) {
	if v.Kind() == reflect.Pointer && v.IsNil() {
		return "", true
	}
	below = null(v)
	return below, below != ""
}

// holdsPointers reports whether a value of the type may hold a pointer: bytes, numbers and
// strings need no look at each.
func holdsPointers(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Struct, reflect.Slice, reflect.Map:
		return true
	}
	return false
}
