package semconv

import (
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/earshot-dev/earshot/core/msg"
)

// elsewhere are the fields of a span that are not names: identity and times,
// which an exporter has fields of its own for, and what is left out on purpose.
var elsewhere = map[string]string{
	"TraceID":        "identity",
	"ID":             "identity",
	"Parent":         "identity",
	"Start":          "time",
	"End":            "time",
	"Events":         "each event: time, EventName, its attributes as they are",
	"Links":          "each link: ids, its attributes as they are",
	"Ver":            "only a store replaces rows",
	"Deleted":        "only a store takes rows back",
	"Shown":          "only a store shows open spans",
	"LastSeen":       "equals End once a span has ended; a column of open_spans",
	"Tool.Arguments": "not kept in a span",
	"Delegate.Task":  "not kept in a span",
	"Tool.ErrorType": "the span's own ErrorType says it",
}

// TestEveryFieldIsNamed changes one field of a span at a time and looks for the
// difference in what the profile says.
func TestEveryFieldIsNamed(t *testing.T) {
	p := profile(t, GenAI141)
	elsewhere := maps.Clone(elsewhere)
	say := func(s *msg.Span) string {
		code, text := p.Status(s)
		return fmt.Sprint(p.Name(s), p.Kind(s), code, text, ServiceName(s), rendered(p, s))
	}
	for _, path := range fields(reflect.TypeFor[msg.Span](), nil) {
		name := strings.Join(path, ".")
		seen := false
		for kind := msg.SpanRun; kind <= msg.SpanWorkflow && !seen; kind++ {
			for outcome := msg.OutcomeUnset; outcome <= msg.OutcomeCancelled && !seen; outcome++ {
				base := msg.Span{Kind: kind, Outcome: outcome, Usage: msg.Tokens{Input: 1}}
				changed := base
				f := reflect.ValueOf(&changed).Elem()
				for _, n := range path {
					f = f.FieldByName(n)
				}
				set(t, f)
				seen = say(&base) != say(&changed)
			}
		}
		why, listed := elsewhere[name]
		switch {
		case !seen && !listed:
			t.Errorf("%s is neither mapped nor listed as left out", name)
		case seen && listed:
			t.Errorf("%s is mapped, and listed as left out: %s", name, why)
		}
		delete(elsewhere, name)
	}
	for name := range elsewhere {
		t.Errorf("%s is listed and is no field", name)
	}
}

func fields(typ reflect.Type, path []string) [][]string {
	var out [][]string
	for i := range typ.NumField() {
		f := typ.Field(i)
		at := append(append([]string(nil), path...), f.Name)
		if f.Type.Kind() == reflect.Struct && f.Type != reflect.TypeFor[msg.Text]() {
			out = append(out, fields(f.Type, at)...)
			continue
		}
		out = append(out, at)
	}
	return out
}

func set(t *testing.T, f reflect.Value) {
	t.Helper()
	switch {
	case f.Type() == reflect.TypeFor[msg.Text]():
		f.Set(reflect.ValueOf(msg.Plain("x")))
	case f.Kind() == reflect.String:
		f.SetString("x")
	case f.Kind() == reflect.Bool:
		f.SetBool(true)
	case f.CanInt():
		f.SetInt(7)
	case f.CanUint():
		f.SetUint(f.Uint() + 1)
	case f.Kind() == reflect.Array:
		f.Index(0).SetUint(7)
	case f.Kind() == reflect.Slice && f.Type().Elem().Kind() == reflect.String:
		f.Set(reflect.ValueOf([]string{"x"}))
	case f.Kind() == reflect.Slice:
		f.Set(reflect.MakeSlice(f.Type(), 1, 1))
	default:
		t.Fatalf("no way to set a field of type %s", f.Type())
	}
}
