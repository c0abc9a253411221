package wire

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	pb "github.com/earshot-dev/earshot/core/proto/earshot/decoder/v1"
)

// full is a message in which every field that crosses the wire is set; fill
// fails the test when a field is added and not its wire form.
func full(t *testing.T, data []byte) msg.Message {
	t.Helper()
	var m msg.Message
	n := 0
	fill(t, reflect.ValueOf(&m).Elem(), "", &n)
	m.Content = msg.Quoted(data[2:8])
	m.Tool.Arguments = msg.Raw(data[10:14])
	m.Delegation.Task = msg.Plain("own text")
	m.Delegation.Confidence = 90
	return m
}

func fill(t *testing.T, v reflect.Value, path string, n *int) {
	t.Helper()
	*n++
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[msg.Text]() || v.Type() == reflect.TypeFor[msg.Host]() {
			return
		}
		for i := range v.NumField() {
			fill(t, v.Field(i), path+"."+v.Type().Field(i).Name, n)
		}
	case reflect.String:
		v.SetString("text of " + path)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Uint8:
		v.SetUint(1)
	case reflect.Uint64:
		v.SetUint(uint64(*n) << 33)
	case reflect.Int32, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(t, v.Index(i), path, n)
		}
	default:
		t.Fatalf("%s: no wire form for %s", path, v.Kind())
	}
}

var sameText = cmp.Comparer(func(a, b msg.Text) bool { return a.String() == b.String() })

func roundTrip(t *testing.T, b *Batch, messages []msg.Message, problems []msg.Problem, snap []byte, f *Failure) Result {
	t.Helper()
	var resp Response
	resp.Append(b, messages, problems, snap, f)
	var out Result
	err := resp.Results(func(raw []byte) error { return out.Read(raw, b.Data) })
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestEveryFieldCrosses(t *testing.T) {
	data := []byte(`{"\u00e4bc":[12,34]}  `)
	want := full(t, data)
	b := &Batch{Stream: 7, Data: data}
	problems := []msg.Problem{{Reason: "invalid_json", Detail: "at byte 3", Frame: -1}}
	fail := &Failure{Error: "no", Permanent: true, Frame: 2}
	got := roundTrip(t, b, []msg.Message{want}, problems, []byte("state"), fail)
	if d := cmp.Diff([]msg.Message{want}, got.Messages, sameText); d != "" {
		t.Errorf("message (-want +got):\n%s", d)
	}
	if d := cmp.Diff(problems, got.Problems); d != "" {
		t.Error(d)
	}
	if !got.HasSnapshot || string(got.Snapshot) != "state" || *got.Failure != *fail || got.Stream != 7 {
		t.Errorf("got %+v", got)
	}
	if raw, quoted := got.Messages[0].Content.Alias(); &raw[0] != &data[2] || !quoted {
		t.Error("the content was copied")
	}
}

// Generated code must read the bytes of this codec, and the other way round: a
// decoder in another language has nothing else.
func TestResponseIsPlainProtobuf(t *testing.T) {
	data := []byte(`{"\u00e4bc":[12,34]}  `)
	want := full(t, data)
	long := msg.Message{Key: "k", Session: "s"}
	for _, n := range []int{0, 1, 120, 127, 128, 16380, 16384, 20000} { // lengths of one byte to three
		long.Attrs = append(long.Attrs, msg.Attr{Key: "a", Value: strings.Repeat("x", n)})
	}
	b := &Batch{Stream: 7, Data: data}
	var resp Response
	resp.Append(b, []msg.Message{want, long, {Key: "invalid \xff", Session: "s"}}, []msg.Problem{{Reason: "r", Detail: "d", Frame: 3}}, []byte{}, &Failure{Error: "e", Frame: -1})
	var p pb.DecodeResponse
	if err := proto.Unmarshal(resp.Bytes(), &p); err != nil {
		t.Fatal(err)
	}
	again, err := proto.Marshal(&p)
	if err != nil {
		t.Fatal(err)
	}
	var a, z Result
	read := func(buf []byte, into *Result) {
		var r Response
		r.SetBytes(buf)
		if err := r.Results(func(raw []byte) error { return into.Read(raw, data) }); err != nil {
			t.Fatal(err)
		}
	}
	read(resp.Bytes(), &a)
	read(again, &z)
	if d := cmp.Diff(long, a.Messages[1], sameText); d != "" || a.Messages[2].Key != "invalid \uFFFD" {
		t.Errorf("(-want +got):\n%s%q", d, a.Messages[2].Key)
	}
	if d := cmp.Diff(a, z, sameText); d != "" {
		t.Errorf("(-ours +generated):\n%s", d)
	}
	if len(p.Results[0].ProtoReflect().GetUnknown()) > 0 || len(p.Results[0].Messages[0].ProtoReflect().GetUnknown()) > 0 {
		t.Error("fields that decoder.proto does not have")
	}
	n := 0
	p.Results[0].Messages[0].ProtoReflect().Range(func(_ protoreflect.FieldDescriptor, _ protoreflect.Value) bool { n++; return true })
	// Each text has two fields of which one is set.
	if all := p.Results[0].Messages[0].ProtoReflect().Descriptor().Fields().Len() - 2; n != all {
		t.Errorf("%d of %d fields of the proto message are set by this codec", n, all)
	}
}

func TestRequestIsPlainProtobuf(t *testing.T) {
	data := []byte("one\ntwo\n\nthree\n")
	in := Request{Batches: []Batch{
		{Stream: 1, Open: &Open{Origin: "/a", Options: "{}", Snapshot: []byte("s")}, Data: data, Flush: true, Snapshot: true, Close: true, Frames: []frame.Frame{
			{Data: data[0:3], At: 5}, {Data: data[4:7], Kind: frame.Event, Name: "n", ID: "i", FromClient: true}, {Data: data[8:8]}, {Data: data[9:14]},
		}},
		{Stream: 2},
	}}
	pieces, err := in.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	raw := pieces.Materialize()
	var p pb.DecodeRequest
	if err := proto.Unmarshal(raw, &p); err != nil {
		t.Fatal(err)
	}
	again, err := proto.Marshal(&p)
	if err != nil {
		t.Fatal(err)
	}
	for name, buf := range map[string][]byte{"ours": raw, "generated": again} {
		var out Request
		// In pieces of three bytes, as gRPC hands it over in pieces.
		var slices mem.BufferSlice
		for rest := buf; len(rest) > 0; {
			n := min(3, len(rest))
			slices, rest = append(slices, mem.SliceBuffer(rest[:n])), rest[n:]
		}
		if err := out.Unmarshal(slices); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(out.Batches) != 2 || out.Batches[1].Stream != 2 {
			t.Fatalf("%s: %+v", name, out)
		}
		b := out.Batches[0]
		if d := cmp.Diff(in.Batches[0].Open, b.Open); d != "" || !b.Flush || !b.Snapshot || !b.Close {
			t.Errorf("%s: %+v %s", name, b, d)
		}
		var got []string
		for _, f := range b.Frames {
			got = append(got, string(f.Data))
		}
		if d := cmp.Diff([]string{"one", "two", "", "three"}, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if f := b.Frames[1]; f.Kind != frame.Event || f.Name != "n" || f.ID != "i" || !f.FromClient || b.Frames[0].At != 5 {
			t.Errorf("%s: %+v", name, b.Frames)
		}
		out.Free()
	}
}

func TestForeignFrameIsRefused(t *testing.T) {
	r := Request{Batches: []Batch{{Data: []byte("abc"), Frames: []frame.Frame{{Data: []byte("abc")}}}}}
	if _, err := r.Marshal(); err == nil {
		t.Error("a frame outside of its batch's buffer was accepted")
	}
}

// A hostile or broken decoder may send anything; reading it never panics and
// never reaches outside of the batch's data.
func FuzzResult(f *testing.F) {
	data := []byte(`{"a":"b"}`)
	var resp Response
	resp.Append(&Batch{Stream: 1, Data: data}, []msg.Message{{Key: "k", Session: "s", Content: msg.Raw(data[2:3]), Attrs: []msg.Attr{{Key: "a", Value: "b"}}}}, []msg.Problem{{Reason: "x"}}, []byte{}, &Failure{})
	f.Add(resp.Bytes())
	f.Fuzz(func(t *testing.T, in []byte) {
		var r Response
		r.SetBytes(in)
		var res Result
		_ = r.Results(func(raw []byte) error {
			if err := res.Read(raw, data); err != nil {
				return err
			}
			for i := range res.Messages {
				if b, _ := res.Messages[i].Content.Alias(); len(b) > len(data) {
					t.Fatal("text larger than its frame")
				}
				_ = res.Messages[i].Content.String()
				_ = res.Messages[i].Validate()
			}
			return nil
		})
	})
}

func FuzzRequest(f *testing.F) {
	r := Request{Batches: []Batch{{Stream: 3, Data: []byte("ab"), Frames: []frame.Frame{{}}}}}
	pieces, err := r.Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(pieces.Materialize())
	f.Fuzz(func(t *testing.T, in []byte) {
		var out Request
		_ = out.Unmarshal(mem.BufferSlice{mem.SliceBuffer(in)})
		out.Free()
	})
}

func BenchmarkResponse(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	data := make([]byte, 1<<20)
	for i := range data {
		data[i] = byte('a' + rng.IntN(26))
	}
	batch := &Batch{Stream: 1, Data: data}
	var messages []msg.Message
	for i := range 512 {
		messages = append(messages, msg.Message{
			Key: "msg_0123456789abcdef", Session: "05e06a0c-cff9-4c22-9560-de519616dc0e", Kind: msg.Assistant, Role: msg.RoleAssistant,
			Content: msg.Raw(data[i*1700 : i*1700+1500]), Time: 1761073198272158600, Precision: msg.Nanos, Complete: msg.Complete,
			Model: "claude-sonnet-4-5-20250929", ResponseID: "msg_0123456789abcdef", Frame: int32(i),
		})
	}
	var resp Response
	var res Result
	b.Run("append", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			resp.Reset()
			resp.Append(batch, messages, nil, nil, nil)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/512, "ns/message")
	})
	b.Run("read", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := resp.Results(func(raw []byte) error { return res.Read(raw, data) }); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/512, "ns/message")
	})
}
