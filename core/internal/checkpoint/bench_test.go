package checkpoint

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkCommit measures an epoch of seven sessions, each with the state of a
// hundred delegations.
func BenchmarkCommit(b *testing.B) {
	s, err := Open(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	var d Delta
	size := 0
	for i := range 7 {
		var state strings.Builder
		state.WriteString(`{"done":{`)
		for n := range 100 {
			fmt.Fprintf(&state, `"call_%d_%d":{"run":"%016x","to":"heron","told":{"call":{"id":"call_%d_%d","tool":"hand_over","model":"swift-2","async":true,"start":%d,"shape":"content:string summary:string"},"result":%d}},`,
				i, n, i*n*7919, i, n, 1793535562016730300+int64(n)*1_234_567, n*97)
		}
		state.WriteString(`"":{}}}`)
		d.Groups = append(d.Groups, Group{Key: fmt.Sprint("session ", i), State: []byte(state.String())})
		size += state.Len()
	}
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Commit(d); err != nil {
			b.Fatal(err)
		}
	}
}
