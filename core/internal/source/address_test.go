package source

import (
	"net/url"
	"testing"
)

func TestAddress(t *testing.T) {
	for in, want := range map[string]string{
		"http://h/a%2Fb":                               "http://h/a%2Fb",
		"http://user:pass@h:80/p?q=1#f":                "http://h:80/p?q=1",
		"http://h/p?api_key=x&agent_id=7&Token=y&b":    "http://h/p?agent_id=7&b",
		"http://h/p?%61pi%5Fkey=x&conversation_id=a+b": "http://h/p?conversation_id=a+b",
		"http://h/p?access_token=x":                    "http://h/p",
		"http://h/p?%zz=x&a=1":                         "http://h/p?a=1",
		"wss://h/?X-Amz-Signature=s&type=team":         "wss://h/?type=team",
	} {
		u, err := url.Parse(in)
		if err != nil {
			t.Fatal(err)
		}
		if got := Address(u); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
		if u.String() != in {
			t.Errorf("%s was changed to %s", in, u)
		}
	}
}
