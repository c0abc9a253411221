package otlp

import (
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"testing"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
)

// TestShortAttributes compares the attributes that are copied with those that the tables write, of all lengths, with each
// byte at each place, and damaged.
func TestShortAttributes(t *testing.T) {
	m := signals()[1].request.names["resourceLogs"].message.names["resource"].message.names["attributes"].message
	if !m.attribute {
		t.Fatal("KeyValue is not known as one")
	}
	tables := *m
	tables.attribute = false
	copied := 0
	check := func(in []byte) {
		t.Helper()
		p, q := protobuf{limit: 1 << 20}, protobuf{limit: 1 << 20}
		got, err := p.message([]byte("before"), m, in, 0)
		want, wantErr := q.message([]byte("before"), &tables, in, 0)
		if (err == nil) != (wantErr == nil) || err == nil && string(got) != string(want) {
			t.Fatalf("%q: %s %v, want %s %v", in, got, err, want, wantErr)
		}
		if _, ok := appendAttribute(nil, in); ok {
			copied++
		}
	}
	encode := func(key, value string) []byte {
		return marshal(t, &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: value}}})
	}
	for key := range 20 {
		for value := range 140 {
			check(encode(strings.Repeat("k", key), strings.Repeat("v", value)))
		}
	}
	if copied < 20*100 {
		t.Errorf("%d are copied", copied)
	}
	for length := range 18 {
		for at := range length {
			for c := range 256 {
				text := []byte(strings.Repeat("v", length))
				text[at] = byte(c)
				in := encode("key", strings.Repeat("v", length))
				copy(in[len(in)-length:], text)
				check(in)
				in = encode(strings.Repeat("v", length), "")
				copy(in[2:], text)
				check(in)
			}
		}
	}
	rng := rand.New(rand.NewPCG(7, 7))
	for range 20_000 {
		in := encode("session.id", "5f0c2b1e-7d41")
		for range 1 + rng.IntN(3) {
			in[rng.IntN(len(in))] = byte(rng.Uint32())
		}
		check(in[:rng.IntN(len(in)+1)])
	}
}

// TestUnusual has each byte in each place of eight plain ones.
func TestUnusual(t *testing.T) {
	for at := range 8 {
		for c := range 256 {
			b := []byte("~a Z0!]#")
			b[at] = byte(c)
			if got := unusual(binary.LittleEndian.Uint64(b)); got != special[c] {
				t.Errorf("%q: %v", b, got)
			}
		}
	}
}
