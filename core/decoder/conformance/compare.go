package conformance

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
)

// line returns the message as a line of want.jsonl: its key, the key of the message
// it answers, and its row.
func line(m *msg.Message) string {
	head, err := marshal(struct {
		Key    string `json:"key"`
		Parent string `json:"parent_key,omitempty"`
	}{m.Key, m.ParentKey})
	if err != nil {
		return err.Error()
	}
	row, err := m.Row().AppendJSON(nil)
	if err != nil {
		return err.Error()
	}
	return string(head[:len(head)-1]) + "," + string(row[1:])
}

// problemLine returns the problem as a line of want.jsonl, without its detail: that is
// for a person, and the same decoder in another language may word it differently.
func problemLine(p *msg.Problem) string {
	b, err := marshal(struct {
		Problem string `json:"problem"`
		Frame   int32  `json:"frame"`
	}{p.Reason, p.Frame})
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSpace(buf.Bytes()), err
}

// item is a message in the form in which runs are compared.
type item struct {
	id, line string
	complete msg.Completeness
}

func items(messages []msg.Message) []item {
	out := make([]item, len(messages))
	for i := range messages {
		m := &messages[i]
		out[i] = item{m.Session + " " + m.Key, line(m), m.Complete}
	}
	return out
}

// fold applies msg.Fold to items.
func fold(lists ...[]item) []item {
	all := slices.Concat(lists...)
	stubs := make([]msg.Message, len(all))
	for i := range all {
		stubs[i] = msg.Message{Key: all[i].id, Complete: all[i].complete, Frame: int32(i)}
	}
	stubs = msg.Fold(stubs)
	out := make([]item, len(stubs))
	for i := range stubs {
		out[i] = all[stubs[i].Frame]
	}
	return out
}

// sorted returns the items sorted by id.
func sorted(in []item) []item {
	out := slices.Clone(in)
	slices.SortStableFunc(out, func(a, b item) int { return cmp.Compare(a.id, b.id) })
	return out
}

// rules names the rule that is broken when two outputs differ: keys when a message has
// an unexpected key, rest when a message is missing or has other content.
type rules struct{ keys, rest string }

// differ compares two outputs, in order. It returns nil when they are the same.
func (r rules) differ(reason string, want, got []item) error {
	if slices.EqualFunc(want, got, func(a, b item) bool { return a.id == b.id && a.line == b.line }) {
		return nil
	}
	rule := r.rest
	count := make(map[string]int)
	for _, w := range want {
		count[w.id]++
	}
	for _, g := range got {
		if count[g.id]--; count[g.id] < 0 {
			rule = r.keys
		}
	}
	return &violation{rule, reason, diff(want, got)}
}

const (
	maxDiffs = 12
	maxText  = 300
)

// diff lists the differences of two outputs, message by message and field by field.
func diff(want, got []item) string {
	var out []string
	left := make(map[string][]item)
	for _, g := range got {
		left[g.id] = append(left[g.id], g)
	}
	for _, w := range want {
		same := left[w.id]
		if len(same) == 0 {
			out = append(out, "- "+cut(w.line))
			continue
		}
		left[w.id] = same[1:]
		if same[0].line != w.line {
			out = append(out, fields(w, same[0])...)
		}
	}
	for _, g := range got {
		if l := left[g.id]; len(l) > 0 && l[0] == g {
			left[g.id] = l[1:]
			out = append(out, "+ "+cut(g.line))
		}
	}
	if len(out) == 0 {
		for i := range want {
			if want[i].id != got[i].id {
				out = append(out, fmt.Sprintf("the order differs: at place %d want %q, got %q", i, want[i].id, got[i].id))
				break
			}
		}
	}
	if n := len(out); n > maxDiffs {
		out = append(out[:maxDiffs], fmt.Sprintf("and %d more", n-maxDiffs))
	}
	return strings.Join(out, "\n")
}

// fields names the fields in which two versions of a message differ.
func fields(want, got item) []string {
	var w, g map[string]any
	if json.Unmarshal([]byte(want.line), &w) != nil || json.Unmarshal([]byte(got.line), &g) != nil {
		return []string{"- " + cut(want.line), "+ " + cut(got.line)}
	}
	var out []string
	for _, k := range slices.Sorted(keys(w, g)) {
		a, b := text(w[k]), text(g[k])
		if a != b {
			out = append(out, fmt.Sprintf("%s: %s: want %s, got %s", want.id, k, cut(a), cut(b)))
		}
	}
	return out
}

func keys(maps ...map[string]any) func(func(string) bool) {
	seen := make(map[string]bool)
	for _, m := range maps {
		for k := range m {
			seen[k] = true
		}
	}
	return func(yield func(string) bool) {
		for k := range seen {
			if !yield(k) {
				return
			}
		}
	}
}

func text(v any) string {
	if v == nil {
		return "nothing"
	}
	b, err := marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func cut(s string) string {
	if len(s) > maxText {
		return fmt.Sprintf("%s... (%d bytes)", strings.ToValidUTF8(s[:maxText], ""), len(s))
	}
	return s
}
