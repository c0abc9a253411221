package legion

import (
	"bytes"
	"testing"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
)

// play decodes lines and flushes, and folds the messages.
func play(t testing.TB, s decoder.Stream, lines ...string) []msg.Message {
	t.Helper()
	d := open(t, s)
	var all []msg.Message
	for _, line := range lines {
		all = append(all, step(t, d, []byte(line))...)
	}
	return msg.Fold(append(all, flush(t, d)...))
}

func open(t testing.TB, s decoder.Stream) decoder.Decoder {
	t.Helper()
	d, err := New().New(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// step decodes a line that is gone after the call.
func step(t testing.TB, d decoder.Decoder, line []byte) []msg.Message {
	t.Helper()
	buf := bytes.Clone(line)
	var out decoder.Output
	if err := d.Decode(&frame.Frame{Data: buf}, &out); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	own(t, out.Messages)
	clear(buf)
	return out.Messages
}

func flush(t testing.TB, d decoder.Decoder) []msg.Message {
	t.Helper()
	var out decoder.Output
	if err := d.Flush(&out); err != nil {
		t.Fatal(err)
	}
	own(t, out.Messages)
	return out.Messages
}

func own(t testing.TB, list []msg.Message) {
	t.Helper()
	for i := range list {
		m := &list[i]
		m.Content, m.Tool.Arguments, m.Delegation.Task = m.Content.Own(), m.Tool.Arguments.Own(), m.Delegation.Task.Own()
		if err := m.Validate(); err != nil {
			t.Error(err)
		}
	}
}
