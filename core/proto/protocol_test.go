// Package proto_test holds PROTOCOL.md against the code.
package proto_test

import (
	"encoding/hex"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/wire"
	"github.com/earshot-dev/earshot/core/msg"
	pb "github.com/earshot-dev/earshot/core/proto/earshot/decoder/v1"
)

func protocol(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("PROTOCOL.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestProtocolNamesWhatTheCodeDoes(t *testing.T) {
	text := protocol(t)
	h := wire.Handshake()
	for _, want := range []string{
		fmt.Sprintf("| `%s` | `%s` |", h.MagicCookieKey, h.MagicCookieValue),
		fmt.Sprintf("| `PLUGIN_PROTOCOL_VERSIONS` | `%d` |", h.ProtocolVersion),
		"`" + goplugin.EnvUnixSocketDir + "`",
		fmt.Sprintf("%d|%d|unix|", goplugin.CoreProtocolVersion, h.ProtocolVersion),
		"service name `" + goplugin.GRPCServiceName + "`",
		fmt.Sprintf("%d MiB (%d bytes)", wire.MaxMessage>>20, wire.MaxMessage),
	} {
		if !strings.Contains(text, want) {
			t.Errorf("PROTOCOL.md does not say %q", want)
		}
	}
	for name := range pb.FrameKind_value {
		if kind := strings.TrimPrefix(name, "FRAME_KIND_"); !strings.Contains(text, "| "+kind) && !strings.Contains(text, ", "+kind) {
			t.Errorf("PROTOCOL.md does not tell of the frame kind %s", kind)
		}
	}
}

// The example's text and bytes are equal to generated code and to ours.
func TestProtocolExample(t *testing.T) {
	text := protocol(t)
	blocks := regexp.MustCompile("(?s)```(textproto|hex)\n(.*?)```").FindAllStringSubmatch(text, -1)
	if len(blocks) != 4 {
		t.Fatalf("%d blocks", len(blocks))
	}
	req, resp := &pb.DecodeRequest{}, &pb.DecodeResponse{}
	raw := [2][]byte{bytesOf(t, blocks[1][2]), bytesOf(t, blocks[3][2])}
	for i, m := range []proto.Message{req, resp} {
		want := m.ProtoReflect().New().Interface()
		if err := prototext.Unmarshal([]byte(blocks[2*i][2]), want); err != nil {
			t.Fatal(err)
		}
		if err := proto.Unmarshal(raw[i], m); err != nil {
			t.Fatal(err)
		}
		if !proto.Equal(want, m) {
			t.Errorf("the text says\n%v\nthe bytes say\n%v", want, m)
		}
	}
	var ours wire.Request
	if err := ours.Unmarshal(mem.BufferSlice{mem.SliceBuffer(raw[0])}); err != nil {
		t.Fatal(err)
	}
	b := ours.Batches[0]
	if len(b.Frames) != 2 || string(b.Frames[1].Data) != `{"type":"us` || b.Frames[0].Kind != frame.Line || b.Open.Origin != "hall" || !b.Flush || !b.Snapshot {
		t.Errorf("%+v", b)
	}
	var r wire.Response
	r.SetBytes(raw[1])
	if err := r.Results(func(one []byte) error {
		var res wire.Result
		if err := res.Read(one, b.Data); err != nil {
			return err
		}
		if len(res.Messages) != 1 || res.Messages[0].Content.String() != "Hi\n" || res.Problems[0].Frame != 1 || string(res.Snapshot) != `{"run":"u-1"}` {
			t.Errorf("%+v", res)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// bytesOf reads a hex dump whose text column follows three spaces.
func bytesOf(t *testing.T, dump string) []byte {
	t.Helper()
	var out []byte
	for l := range strings.Lines(dump) {
		digits, _, _ := strings.Cut(l, "   ")
		b, err := hex.DecodeString(strings.ReplaceAll(digits, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, b...)
	}
	return out
}

// The table of required fields agrees with the host's refusals: a kind that is not in its row needs no
// more than any message.
func TestProtocolRequiresWhatTheHostDoes(t *testing.T) {
	_, table, _ := strings.Cut(protocol(t), "| kind | required |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	required := make(map[string]string)
	for row := range strings.Lines(table + "\n") {
		kinds, fields, _ := strings.Cut(strings.Trim(row, "| \n"), " | ")
		for kind := range strings.SplitSeq(kinds, ", ") {
			required[kind] = fields
		}
	}
	names := make(map[string]bool)
	for value, name := range pb.Kind_name {
		name = strings.TrimPrefix(name, "KIND_")
		names[name] = true
		for _, complete := range []msg.Completeness{msg.Partial, msg.Complete} {
			for _, absent := range []string{"", "`key`", "`session`", "`tool_call_id`", "`tool_name`"} {
				m := msg.Message{Key: "k", Session: "s", Kind: msg.Kind(value), Complete: complete, Tool: msg.Tool{CallID: "c", Name: "n"}}
				switch absent {
				case "`key`":
					m.Key = ""
				case "`session`":
					m.Session = ""
				case "`tool_call_id`":
					m.Tool.CallID = ""
				case "`tool_name`":
					m.Tool.Name = ""
				}
				want := absent != "" && strings.Contains(required["any"]+required[name], absent)
				if absent == "`tool_name`" && complete != msg.Complete && strings.Contains(required[name], "`tool_name` when `complete` is COMPLETE") {
					want = false
				}
				if err := m.Validate(); (err != nil) != want {
					t.Errorf("%s (%v) without %s: %v, PROTOCOL.md has %q", name, complete, absent, err, required[name])
				}
			}
		}
		m := msg.Message{Key: "k", Session: "s", Kind: msg.Kind(value), Tool: msg.Tool{CallID: "c", Name: "n"}, Usage: msg.Tokens{Input: 1}}
		if err := m.Validate(); (err == nil) != strings.Contains(required[name], "`usage`") {
			t.Errorf("%s with tokens: %v", name, err)
		}
	}
	for kind := range required {
		if kind != "any" && !names[kind] {
			t.Errorf("PROTOCOL.md requires something of %s, which is no kind", kind)
		}
	}
}
