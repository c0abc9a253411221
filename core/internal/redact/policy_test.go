package redact

import (
	"strings"
	"testing"

	"github.com/earshot-dev/earshot/core/msg"
)

// TestPersonalData has numbers with right and with wrong check digits.
func TestPersonalData(t *testing.T) {
	var none *Redactor
	f, err := none.Filter(Policy{Personal: Mask, Words: []string{"Lerrin"}, Patterns: []Pattern{{"berth", `\bB-[0-9]{4}\b`}}}, func(string, int) {})
	if err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{
		"mail ada@quay.example, or":           "mail [personal:email], or",
		"pay 4111 1111 1111 1111 now":         "pay [personal:card] now",
		"pay 4111 1111 1111 1112 now":         "pay 4111 1111 1111 1112 now",
		"to GB82 WEST 1234 5698 7654 32.":     "to [personal:iban].",
		"to DE89370400440532013000":           "to [personal:iban]",
		"to DE88370400440532013000":           "to DE88370400440532013000",
		"ssn 536-90-4399":                     "ssn [personal:national_id]",
		"ssn 000-90-4399":                     "ssn 000-90-4399",
		"nino AB 12 34 56 C":                  "nino [personal:national_id]",
		"nir 2 55 08 14 168 025 38":           "nir [personal:national_id]",
		"steuer 86095742719":                  "steuer [personal:national_id]",
		"cf RSSMRA85T10A562S":                 "cf [personal:national_id]",
		"dni 12345678Z":                       "dni [personal:national_id]",
		"dni 12345678A":                       "dni 12345678A",
		"bsn 111222333":                       "bsn [personal:national_id]",
		"pesel 44051401359":                   "pesel [personal:national_id]",
		"pesel 44051401358":                   "pesel 44051401358",
		"pesel 12001477763":                   "pesel 12001477763", // month 0
		"pn 811218-9876":                      "pn [personal:national_id]",
		"cpf 529.982.247-25":                  "cpf [personal:national_id]",
		"call +49 30 123456 7":                "call [personal:phone]",
		"call (030) 1234 5678":                "call [personal:phone]",
		"from 203.0.113.7 port":               "from [personal:ip] port",
		"from 2001:db8::7 port":               "from [personal:ip] port",
		"v 1.2.3, 127.0.0.1 and 12:34:56":     "v 1.2.3, 127.0.0.1 and 12:34:56",
		"LERRIN at B-1234":                    "[personal:word] at [personal:berth]",
		"on 2026-03-01 08:00:04 in 300 ms":    "on 2026-03-01 08:00:04 in 300 ms",
		"[redacted:api_key:0123456789abcdef]": "[redacted:api_key:0123456789abcdef]",
	} {
		if got := f.String(in); got != want {
			t.Errorf("%s\n got %s\nwant %s", in, got, want)
		}
	}
	if got := strings.Join(PersonalKinds(), " "); got != "email iban card national_id ip phone" {
		t.Error(got)
	}
}

// TestTokensJoin: the same value has the same token everywhere, and another with another key.
func TestTokensJoin(t *testing.T) {
	var none *Redactor
	token := func(salt, in string) string {
		f, err := none.Filter(Policy{Personal: Token, Salt: []byte(salt)}, func(string, int) {})
		if err != nil {
			t.Fatal(err)
		}
		m := msg.Message{Content: msg.Plain(in)}
		f.Message(&m, nil)
		_, out, _ := strings.Cut(m.Content.String(), "[")
		return out
	}
	one := token("a", "mail ada@quay.example")
	if one != token("a", "to ada@quay.example") || one == token("b", "mail ada@quay.example") || one == token("a", "mail bob@quay.example") || strings.Contains(one, "ada") {
		t.Error(one)
	}
	if _, err := none.Filter(Policy{Personal: Token}, nil); err == nil {
		t.Error("tokens without a key")
	}
}
