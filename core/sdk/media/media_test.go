package media

import (
	"testing"

	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

const (
	abc   = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
)

func TestAttachments(t *testing.T) {
	url := URL
	base64 := func(v jsonv.Value) msg.Attachment { return Base64(v, "text/plain") }
	for _, c := range []struct {
		in   string
		of   func(jsonv.Value) msg.Attachment
		want msg.Attachment
		read bool
	}{
		{`"https://a.example/x.png?long=yes"`, url, msg.Attachment{URL: "https://a.example/x.png?long=yes"}, true},
		{`"data:text/plain;base64,YWJj"`, url, msg.Attachment{MediaType: "text/plain", Size: 3, SHA256: abc}, true},
		{`"data:text\/plain;base64,YWJj"`, url, msg.Attachment{MediaType: "text/plain", Size: 3, SHA256: abc}, true},
		{`"data:image/png;base64,***-broken"`, url, msg.Attachment{MediaType: "image/png"}, false},
		{`"data:image/png;base64;cut-off"`, url, msg.Attachment{MediaType: "image/png"}, false},
		{`"YWJj"`, base64, msg.Attachment{MediaType: "text/plain", Size: 3, SHA256: abc}, true},
		{`"YW\/j"`, Sniffed, msg.Attachment{MediaType: "application/octet-stream", Size: 3, SHA256: "82090ae3296f1337a3a37c16412ec1b95c7435537c18f28f43557e8fd8d7f842"}, true},
		{`"--__"`, base64, msg.Attachment{MediaType: "text/plain", Size: 3, SHA256: "099a8b91dc87c576d70f5cfa328ad935cb3012cbb4932757496643d2f8e94061"}, true},
		{`"YWJjYWJjYWJjYWJjYWJjYWJ"`, base64, msg.Attachment{MediaType: "text/plain", Size: 15}, false},
		{`""`, base64, msg.Attachment{MediaType: "text/plain", SHA256: empty}, true},
		{`7`, base64, msg.Attachment{MediaType: "text/plain", SHA256: empty}, true},
		{`"R0lGODlh"`, Sniffed, msg.Attachment{MediaType: "image/gif", Size: 6, SHA256: "610f5ae4d76e332636a17bd357fd6ce99029316a99d320280d4d77a746bf29e8"}, true},
	} {
		var doc jsonv.Doc
		if err := doc.Parse([]byte(c.in)); err != nil {
			t.Fatal(err)
		}
		got := c.of(doc.Root())
		if got != c.want {
			t.Errorf("%s: %+v", c.in, got)
		}
		if read := len(doc.Unread(1, func([]string) bool { return false })) == 0; read != c.read && doc.Root().Is(jsonv.String) {
			t.Errorf("%s: read %t", c.in, read)
		}
	}
}

func TestFile(t *testing.T) {
	for path, name := range map[string]string{"/srv/a b.png": "a b.png", `C:\x\y.png`: "y.png", "y": "y", "": ""} {
		if got := File(path); got != (msg.Attachment{Name: name, URL: path}) {
			t.Errorf("%s: %+v", path, got)
		}
	}
}
