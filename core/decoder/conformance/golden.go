package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
)

// Golden returns the content of want.jsonl for the case: each message of the
// folded output as one line of JSON (key, parent_key where there is one, then the
// columns of its row), and after them each problem ({"problem", "frame"}).
//
// The error names the rule that the decoder broke; its output is not a golden then.
func Golden(ctx context.Context, s Subject, c Case) ([]byte, error) {
	r := &runner{suite: &Suite{Subject: s}, c: &c}
	base, err := r.play(ctx, s, c.Stream, c.Frames, playOptions{})
	if err != nil {
		return nil, err
	}
	if err := validate(base); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	for _, it := range append(base.folded(), base.problemItems()...) {
		out.WriteString(it.line)
		out.WriteByte('\n')
	}
	return out.Bytes(), nil
}

// golden is C1.
func golden(_ context.Context, r *runner) error {
	if err := validate(r.base); err != nil {
		return err
	}
	if r.c.Want == nil {
		return violates("D4", "there is no want.jsonl: write it with `go test -update` or `earshot plugin test --update`, and read what it wrote")
	}
	want, err := parseGolden(r.c.Want)
	if err != nil {
		return violates("D4", "want.jsonl: %v", err)
	}
	messages, problems := want, []item(nil)
	for i, it := range want {
		if strings.HasPrefix(it.id, problemPrefix) {
			messages, problems = want[:i], want[i:]
			break
		}
	}
	const reason = "the output is not that of want.jsonl"
	if err := (rules{keys: "D5", rest: "D4"}).differ(reason, messages, r.base.folded()); err != nil {
		return err
	}
	return rules{keys: "D8", rest: "D8"}.differ(reason, problems, r.base.problemItems())
}

const problemPrefix = "problem at frame "

// problemItems returns the problems as items.
func (r *run) problemItems() []item {
	var out []item
	for i := range r.problems {
		out = append(out, item{id: fmt.Sprint(problemPrefix, r.problems[i].Frame), line: problemLine(&r.problems[i])})
	}
	return out
}

func parseGolden(want []byte) ([]item, error) {
	var out []item
	for l := range strings.Lines(string(want)) {
		if l = strings.TrimSpace(l); l == "" {
			continue
		}
		var id struct {
			Key     string `json:"key"`
			Session string `json:"session_id"`
			Problem string `json:"problem"`
			Frame   int    `json:"frame"`
		}
		if err := json.Unmarshal([]byte(l), &id); err != nil {
			return nil, fmt.Errorf("line %d: %w", len(out)+1, err)
		}
		it := item{id: id.Session + " " + id.Key, line: l}
		if id.Problem != "" {
			it.id = fmt.Sprint(problemPrefix, id.Frame)
		}
		out = append(out, it)
	}
	return out, nil
}

// validate checks that each message is well formed, that keys are unique and that reasons
// are codes.
func validate(r *run) error {
	if err := wellFormed(r); err != nil {
		return err
	}
	seen := make(map[string]*msg.Message)
	for i := range r.messages {
		m := &r.messages[i]
		id := m.Session + " " + m.Key
		if before := seen[id]; before != nil && before.Kind != m.Kind {
			return &violation{"D5", "two messages have the same key", line(before) + "\n" + line(m)}
		}
		seen[id] = m
	}
	for i := range r.problems {
		if p := &r.problems[i]; !isCode(p.Reason) {
			return violates("D8", "the reason %q of a problem is not a code: want lower case letters, digits and _", p.Reason)
		}
	}
	return nil
}

// wellFormed checks each message by itself.
func wellFormed(r *run) *violation {
	for _, list := range [][]msg.Message{r.messages, r.open} {
		for i := range list {
			if err := list[i].Validate(); err != nil {
				return &violation{"D5", err.Error(), line(&list[i])}
			}
		}
	}
	return nil
}

func isCode(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}
