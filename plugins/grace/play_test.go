package grace

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/decoder/decodertest"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/frame/fixture"
	"github.com/earshot-dev/earshot/core/msg"
)

// stateful is a decoder as the host has it.
type stateful interface {
	decoder.Decoder
	decoder.Snapshotter
}

func newStream(t testing.TB, origin string) stateful {
	t.Helper()
	d, err := New().New(decoder.Stream{Origin: origin})
	if err != nil {
		t.Fatal(err)
	}
	return d.(stateful)
}

// decodeFrames decodes frames and returns the folded messages, open ones included.
func decodeFrames(t testing.TB, frames []frame.Frame) []msg.Message {
	t.Helper()
	return decodertest.Messages(t, New(), decoder.Stream{Origin: "/srv/lerrin.jsonl"}, frames)
}

// rowsOf are messages as lines, key and row.
func rowsOf(t testing.TB, messages []msg.Message) string {
	t.Helper()
	var b strings.Builder
	for i := range messages {
		row, err := messages[i].Row().AppendJSON(nil)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %s\n", messages[i].Key, row)
	}
	return b.String()
}

func load(t testing.TB, name, file string) []frame.Frame {
	t.Helper()
	path := filepath.Join("testdata", name, file)
	transport, err := fixture.TransportOf(path)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	frames, err := fixture.Read(transport, b)
	if err != nil {
		t.Fatal(err)
	}
	return frames
}

// lines are the payloads of a stream, as WebSocket messages.
func lines(payloads ...string) []frame.Frame {
	out := make([]frame.Frame, len(payloads))
	for i, p := range payloads {
		out[i] = frame.Frame{Kind: frame.Text, Data: []byte(p)}
	}
	return out
}

// encoded are the payloads of a stream, as events in base64.
func encoded(payloads ...string) []frame.Frame {
	out := make([]frame.Frame, len(payloads))
	for i, p := range payloads {
		out[i] = frame.Frame{Kind: frame.Event, Name: "message", Data: []byte(base64.StdEncoding.EncodeToString([]byte(p)))}
	}
	return out
}

// chunked are the payloads of a stream, as chunks of a completion.
func chunked(t testing.TB, payloads ...string) []frame.Frame {
	t.Helper()
	out := make([]frame.Frame, len(payloads))
	for i, p := range payloads {
		quoted, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		out[i] = frame.Frame{Kind: frame.Event, Data: fmt.Appendf(nil,
			`{"id":"x","object":"chat.completion.chunk","created":1772445600,"model":"gpt","choices":[{"index":0,"delta":{"role":"assistant","content":%s},"finish_reason":null}]}`, quoted)}
	}
	return out
}

// sent is a message as the server formats it.
func sent(t testing.TB, action, status, uuid, task, content string) string {
	t.Helper()
	b, err := json.Marshal(map[string]any{
		"role": "assistant", "uuid": uuid, "status": status, "content": content, "comments": "", "memorized": "", "timestamp": int64(1772445600000) + int64(len(content)+len(status)),
		"type": "", "meta": map[string]any{"pid": "", "task_id": task, "action_type": action, "filepath": "", "url": "", "json": []any{}, "content": "", "is_active": true},
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
