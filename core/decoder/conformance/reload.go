package conformance

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
)

// Lacks lists the messages and columns that one of the two forms of a conversation does
// not have, each with the reason. It is the file reload.lacks.json of a case:
//
//	{"reload": {"status": "runs keep no events",
//	            "assistant.model": "only the run has a model",
//	            "*.attributes.team_id": "...",
//	            "key:usage:m1": "...",
//	            "order": "members are listed one after the other"},
//	 "live": {}}
//
// A name means all messages of a kind, one column of a kind or of all (the names of
// want.jsonl), the message with a key, or the order of messages. An entry that the form
// does have is an error too: the list is a fact of the format, and the README may quote
// it.
type Lacks struct {
	Reload map[string]string `json:"reload,omitempty"`
	Live   map[string]string `json:"live,omitempty"`
}

// reloadAny is C4 for all cases together: a format with a reloaded form has a case of it.
func reloadAny(_ context.Context, r *runner) error {
	if !r.suite.Subject.Describe().Info.Reload {
		return skipped("the format has no reloaded form")
	}
	for i := range r.suite.Cases {
		if r.suite.Cases[i].Reload != nil {
			return nil
		}
	}
	return violates("D5", "Info.Reload is set, but no case has a reloaded form")
}

// reloadCase is C4. The live stream and its reloaded form fold to the same messages.
func reloadCase(ctx context.Context, r *runner) error {
	switch known := r.suite.Subject.Describe().Info.Reload; {
	case r.c.Reload == nil && !known:
		return skipped("the format has no reloaded form")
	case r.c.Reload == nil:
		return skipped("the case has no reloaded form")
	case !known:
		return violates("D5", "the case has a reloaded form, but Info.Reload is not set")
	}
	again, err := r.play(ctx, r.suite.Subject, r.c.ReloadStream, r.c.Reload, playOptions{})
	if err != nil {
		return err
	}
	if err := validate(again); err != nil {
		return err
	}
	if len(again.problems) > len(r.base.problems) {
		p := again.problems[len(again.problems)-1]
		return violates("D5", "the reloaded form has the problem %s at frame %d: %s", p.Reason, p.Frame, p.Detail)
	}
	live, reload := withoutUnknown(r.base.foldedMessages()), withoutUnknown(again.foldedMessages())
	normalize(live, reload)
	a, b := forms(live), forms(reload)
	unordered := false
	for _, side := range []struct {
		name  string
		lacks map[string]string
		other *[]form
	}{{"reload", r.c.Lacks.Reload, &a}, {"live", r.c.Lacks.Live, &b}} {
		for _, name := range slices.Sorted(maps.Keys(side.lacks)) {
			if name == "order" {
				unordered = true
				continue
			}
			var found bool
			if *side.other, found = removeLacking(*side.other, name); !found {
				return violates("D5", "reload.lacks.json: %s: %q: the other form does not have it either", side.name, name)
			}
		}
	}
	want, got := formItems(a), formItems(b)
	equal := rules{"D5", "D5"}
	if unordered {
		if equal.differ("", want, got) == nil {
			return violates("D5", `reload.lacks.json: "order": the order is the same`)
		}
		want, got = sorted(want), sorted(got)
	}
	return equal.differ("the stream and its reloaded form do not fold to the same messages", want, got)
}

// normalize rounds the times of the same message to the coarser of their precisions, removes
// both when a decoder inferred one, and treats a summarized message as complete.
func normalize(live, reload []msg.Message) {
	type id struct{ session, key string }
	other := make(map[id]*msg.Message)
	for i := range reload {
		other[id{reload[i].Session, reload[i].Key}] = &reload[i]
	}
	for i := range live {
		a := &live[i]
		b := other[id{a.Session, a.Key}]
		if b == nil {
			continue
		}
		if a.Time != 0 && b.Time != 0 {
			p := min(a.Precision, b.Precision)
			if p == msg.Inferred { // one of both times is not the protocol's
				a.Time, b.Time = 0, 0
			}
			a.Time, b.Time = a.Time-a.Time%unit(p), b.Time-b.Time%unit(p)
			a.Precision, b.Precision = p, p
		}
		if a.Complete > msg.Partial && b.Complete > msg.Partial {
			a.Complete, b.Complete = msg.Complete, msg.Complete
		}
	}
}

func unit(p msg.Precision) int64 {
	switch p {
	case msg.Seconds:
		return 1e9
	case msg.Millis:
		return 1e6
	case msg.Micros:
		return 1e3
	}
	return 1
}

// form is a message of the live or the reloaded form, by its columns.
type form struct {
	id      string
	columns map[string]any
}

// withoutUnknown removes the unknown fields that the decoder kept: they differ between the
// forms.
func withoutUnknown(messages []msg.Message) []msg.Message {
	var out []msg.Message
	for _, m := range messages {
		if m.Kind == msg.Unknown && m.Attr("type") == msg.AttrUnknownFields {
			continue
		}
		m.Attrs = slices.DeleteFunc(slices.Clone(m.Attrs), func(a msg.Attr) bool { return a.Key == msg.AttrUnknownFields })
		out = append(out, m)
	}
	return out
}

func forms(messages []msg.Message) []form {
	out := make([]form, 0, len(messages))
	for _, it := range items(messages) {
		f := form{id: it.id}
		if err := json.Unmarshal([]byte(it.line), &f.columns); err != nil {
			f.columns = map[string]any{"line": it.line}
		}
		out = append(out, f)
	}
	return out
}

func formItems(in []form) []item {
	out := make([]item, len(in))
	for i, f := range in {
		out[i] = item{id: f.id, line: text(f.columns)}
	}
	return out
}

// removeLacking removes from a form the messages or the column that the other one lacks,
// and reports whether it had them.
func removeLacking(in []form, name string) (out []form, found bool) {
	key, byKey := strings.CutPrefix(name, "key:")
	kind, column, byColumn := strings.Cut(name, ".")
	for _, f := range in {
		switch {
		case byKey:
			if f.columns["key"] == key {
				found = true
				continue
			}
		case byColumn:
			if kind == "*" || f.columns["kind"] == kind {
				found = f.drop(column) || found
			}
		case f.columns["kind"] == name:
			found = true
			continue
		}
		out = append(out, f)
	}
	return out, found
}

// drop removes a column and the columns derived from it.
func (f form) drop(column string) bool {
	if name, ok := strings.CutPrefix(column, "attributes."); ok {
		attributes, _ := f.columns["attributes"].(map[string]any)
		_, had := attributes[name]
		delete(attributes, name)
		if len(attributes) == 0 {
			delete(f.columns, "attributes")
		}
		return had
	}
	_, had := f.columns[column]
	delete(f.columns, column)
	switch column {
	case "content":
		f.drop("content_bytes")
		f.drop("tool_result")
	case "ts":
		f.drop("attributes.time_precision")
	}
	return had
}
