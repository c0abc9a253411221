package grace

import (
	"bytes"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// body decodes a whole response: the rows of a conversation, one message, or the
// bytes of a stream without delimiters.
//
//	{"code":200,"data":[{"id":1,"conversation_id":"…","role":"user","meta":"{…}",…},…],"msg":""}
func (d *stream) body(data []byte, out *decoder.Output) {
	data = bytes.TrimSpace(data)
	if err := d.parseNext(data, out); err != nil {
		if hasPrefix(data, markerStart) || d.chatting() || objectEnd(data) > 0 && objectEnd(data) < len(data) {
			d.raw(data, false, out)
			return
		}
		reportInvalid(out, err)
		return
	}
	root := d.doc.Root()
	list, ok := rowList(root)
	switch {
	case ok:
		d.rows(list, out)
	case root.Is(jsonv.Object):
		d.message(root, out)
	default:
		out.Problem(msg.ReasonWrongType, "expected an object or a list, got "+root.Kind().String())
	}
}

// rowList finds the list of messages in a response.
func rowList(root jsonv.Value) (jsonv.Value, bool) {
	for _, v := range [...]jsonv.Value{
		root, root.Get("data"), root.Get("messages"), root.Path("data", "messages"), root.Path("data", "list"), root.Path("data", "rows"),
	} {
		if v.Is(jsonv.Array) {
			return v, true
		}
	}
	return jsonv.Value{}, false
}

// rows decodes all messages of a conversation, oldest first. The state of earlier frames does
// not apply to them.
func (d *stream) rows(list jsonv.Value, out *decoder.Output) {
	d.Turn, d.Fresh, d.Tasks, d.Intents, d.Calls, d.Ask, d.Asked = turn{}, true, nil, nil, nil, nil, nil
	d.listed = true
	defer func() { d.listed = false }()
	for v := range list.Elems() {
		if v.Is(jsonv.Object) {
			d.message(v, out)
		} else {
			d.keepRaw(out, "row", v)
		}
	}
	if d.Ask != nil { // nothing has answered it yet
		d.Ask.Key = "asked:" + d.Ask.Hash
		d.Shown = d.Ask.Key
	}
}
