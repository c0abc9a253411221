package decodertest

import (
	"os"
	"testing"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/decoder/conformance"
	"github.com/earshot-dev/earshot/core/msg"
)

// Play decodes a case of ./testdata in this process and returns its folded messages.
func Play(t testing.TB, factory decoder.Factory, name string) []msg.Message {
	t.Helper()
	cases, err := conformance.Load(os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		if c.Name == name {
			var out decoder.Output
			if err := once(factory, c.Stream, c.Frames, &out); err != nil {
				t.Fatal(err)
			}
			return msg.Fold(out.Messages)
		}
	}
	t.Fatalf("no case %s", name)
	return nil
}
