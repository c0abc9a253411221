package mcp

import (
	"slices"
	"testing"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/decoder/decodertest"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
)

// TestEndOfTaskIsWhole: the notification of a task that fails has its _meta also when the frame comes alone, so that the list of
// messages grows while it is read.
func TestEndOfTaskIsWhole(t *testing.T) {
	d, err := New().New(decoder.Stream{})
	if err != nil {
		t.Fatal(err)
	}
	var got []msg.Message
	for _, in := range []string{
		`{"id":1,"method":"tools/call","params":{"name":"count_hives","arguments":{"field":"north"}}}`,
		`{"id":1,"result":{"task":{"taskId":"task-of-the-field","status":"working"}}}`,
		`{"method":"notifications/tasks/status","params":{"taskId":"task-of-the-field","status":"failed","_meta":{"traceparent":"00-7d3f-1f2e-01"}}}`,
	} {
		got = decodertest.Feed(t, d, []frame.Frame{{Data: []byte(in)}}).Messages
	}
	if len(got) != 3 || !slices.Contains(got[0].Attrs, msg.Attr{Key: "traceparent", Value: "00-7d3f-1f2e-01"}) {
		t.Errorf("%+v", got)
	}
}
