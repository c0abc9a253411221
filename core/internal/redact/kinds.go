package redact

// kind is a kind of well-known secret: the expression that finds it, from which the prefilter is
// derived, and the other conditions of it. The facts are those that the services publish and
// that public rule sets such as Gitleaks' have.
type kind struct {
	name string
	// expr begins with a text of three bytes or more, or a few of these, perhaps behind \b. Its
	// first group, if any, is the secret. It is applied to text and to JSON with its escapes.
	expr string
	// back are bytes before the text that belong to the secret: at least the first number of them,
	// at most the second.
	back    class
	backMin int
	backMax int
	entropy float64           // bits of each byte of the secret, at least
	check   func([]byte) bool // of the secret
	reach   int               // how far the expression looks; 0: 512 bytes
	// closer, if set, makes a kind that is no secret: it reports whether the text demands a closer look, with the index of the last byte of the match.
	closer func(b []byte, at int) bool
	ahead  func([]byte) (n int) // a quick test of the text: 0 when it may match, else for how many bytes nothing of the kind begins
}

// class is a set of bytes.
type class func(byte) bool

// token is a secret with a prefix of its own.
func token(name, expr string) kind { return kind{name: name, expr: `\b` + expr, entropy: 1.5} }

// named is a secret that only the name of its service before it betrays.
func named(service, word, value string) kind {
	return kind{
		name: service, expr: `(?i:` + word + `)[ \t0-9A-Za-z_.-]{0,24}["'\\\s]{0,4}(?:=>|:=|[:=,>])["'\\\s=]{0,5}(` + value + `)(?:[^0-9A-Za-z_/+-]|\z)`,
		entropy: 3, check: mixed,
	}
}

// kinds are the builtin kinds of secrets. Of two that find the same the first names it. A new one is the last,
// because the prefilter groups the windows in this order, and those behind it are grouped differently then.
func kinds() []kind {
	const (
		sep   = `["'\\]{0,6}\s{0,4}(?:=>|:=|[:=])\s{0,4}` // between a key and its value
		after = `[\s"'\\:=]["'\\\s:=>]{0,12}?`            // the same, a byte of it at least
		quote = `[\\]{0,7}["'\x60]`
		uuid  = `[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`
		blank = `(?:\s|\\+[nrt])`
	)
	return []kind{
		{name: "private_key", expr: `-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?s:.*?)(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\z)`, reach: 64 << 10},
		{name: "private_key", expr: `PuTTY-User-Key-File-[0-9](?s:.*?)(?:Private-MAC: [0-9a-f]+|\z)`, reach: 64 << 10},
		{name: "jwt", expr: `\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?`, check: jwtShape, ahead: noDot, reach: 16 << 10},
		{name: "aws_access_key", expr: `\b((?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16})(?:[^0-9A-Za-z]|\z)`},
		{name: "aws_secret_key", expr: `(?i:secret_?access_?key)[^A-Za-z0-9/+\n]{1,8}([A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+]|\z)`},
		{name: "aws_session_token", expr: `(?i:session_?token)[^A-Za-z0-9/+\n]{1,8}([A-Za-z0-9/+=]{64,})`, reach: 4096},
		token("aws_bedrock_key", `ABSK[A-Za-z0-9+/]{60,}={0,2}`),
		{name: "aws_bedrock_key", expr: `bedrock-api-key-[A-Za-z0-9+/=]{20,}`, reach: 4096},

		token("anthropic_api_key", `sk-ant-[a-z0-9]{2,12}-[A-Za-z0-9_-]{20,}`),
		token("openrouter_api_key", `sk-or-v1-[0-9a-f]{64}`),
		{name: "api_key", expr: `\bsk-[A-Za-z0-9_-]{16,}`, entropy: 3, check: random},
		token("groq_api_key", `gsk_[A-Za-z0-9]{40,}`), token("xai_api_key", `xai-[A-Za-z0-9]{60,}`), token("perplexity_api_key", `pplx-[A-Za-z0-9]{40,}`),
		token("replicate_api_token", `r8_[A-Za-z0-9]{30,}`), token("huggingface_token", `hf_[A-Za-z0-9]{20,}`), token("huggingface_token", `api_org_[A-Za-z0-9]{30,}`),
		token("fireworks_api_key", `fw_[A-Za-z0-9]{22,}`), token("nvidia_api_key", `nvapi-[A-Za-z0-9_-]{50,}`), token("langsmith_api_key", `lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{8,}`),
		token("langfuse_key", `(?:sk|pk)-lf-[0-9a-f]{8}-[0-9a-f-]{27}`), token("tavily_api_key", `tvly-[A-Za-z0-9-]{20,}`), token("pinecone_api_key", `pcsk_[A-Za-z0-9_]{50,}`),
		token("deepgram_api_key", `dg_[A-Za-z0-9]{36,}`), token("cerebras_api_key", `csk-[a-z0-9]{40,}`), token("e2b_api_key", `e2b_[0-9a-f]{40}`), token("exa_api_key", `exa_[A-Za-z0-9]{32,}`),
		token("weave_api_key", `wandb_v1_[A-Za-z0-9_]{40,}`), token("firecrawl_api_key", `fc-[0-9a-f]{32}`),

		token("github_token", `gh[pousr]_[A-Za-z0-9]{20,}`), token("github_token", `github_pat_[A-Za-z0-9_]{20,}`),
		token("gitlab_token", `gl(?:pat|dt|ft|rt|imt|ptt|oas|soat|cbt|ffct|agent|rtr)-[A-Za-z0-9_.=-]{16,}`), token("gitlab_token", `GR1348941[A-Za-z0-9_-]{20}`),
		token("gitlab_session", `_gitlab_session=[0-9a-z]{32}`), token("bitbucket_token", `ATBB[A-Za-z0-9]{32}`), token("bitbucket_token", `ATCTT3xFfG[A-Za-z0-9_=-]{50,}`),
		token("atlassian_token", `ATATT3[A-Za-z0-9_=-]{60,}`), token("slack_token", `xox[a-z]-[A-Za-z0-9-]{16,}`), token("slack_token", `xoxe\.xox[bp]-[0-9]-[A-Za-z0-9]{100,}`),
		token("slack_app_token", `xapp-[0-9]-[A-Za-z0-9]+-[0-9]+-[A-Za-z0-9]{16,}`),
		{name: "slack_webhook", expr: `hooks\.slack\.com(?:\\{0,7}/)(?:services|workflows|triggers)((?:\\{0,7}/)[A-Za-z0-9+/\\]{20,})`, entropy: 3},
		{name: "discord_webhook", expr: `discord(?:app)?\.com(?:\\{0,7}/)api(?:\\{0,7}/)webhooks(?:\\{0,7}/)([0-9]{15,20}(?:\\{0,7}/)[A-Za-z0-9_-]{40,})`},
		{name: "teams_webhook", expr: `webhook\.office\.com(?:\\{0,7}/)webhookb2(?:\\{0,7}/)([0-9a-f@/\\A-Za-z-]{60,})`},
		{name: "telegram_bot_token", expr: `(:A[A-Za-z0-9_-]{34})(?:[^A-Za-z0-9_-]|\z)`, back: digit, backMin: 6, backMax: 12, entropy: 3.5, check: mixed},
		{name: "discord_bot_token", expr: `(?i:discord)[ \t0-9A-Za-z_.-]{0,24}["'\\\s]{0,4}(?:=>|:=|[:=,>])["'\\\s=]{0,5}(?:Bot\s)?([MNO][A-Za-z0-9_-]{22,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,})`},
		{name: "discord_bot_token", expr: `(?:Authorization: )Bot ([MNO][A-Za-z0-9_-]{22,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,})`},

		token("google_api_key", `AIza[A-Za-z0-9_-]{30,}`), token("google_oauth_token", `ya29\.[A-Za-z0-9_.-]{20,}`), token("google_client_secret", `GOCSPX-[A-Za-z0-9_-]{20,}`),
		token("google_refresh_token", `1//0[A-Za-z0-9_-]{30,}`),
		{name: "azure_client_secret", expr: `[0-9]Q~[A-Za-z0-9_~.-]{31,34}`, back: azure, backMin: 3, backMax: 3, entropy: 3},
		{name: "azure_key", expr: `(?:AccountKey|SharedAccessKey|AccessKey)=([A-Za-z0-9+/]{40,}={0,2})`, entropy: 3},
		{name: "azure_sas", expr: `(?:[?&;]|\\u0026)sig=([A-Za-z0-9%+/=_-]{30,})`, entropy: 3}, {name: "azure_sas", expr: `SharedAccessSignature=([^\s"'\\;]{30,})`, entropy: 3},
		token("azure_devops_token", `azp_[A-Za-z0-9]{40,}`),
		token("digitalocean_token", `do[opr]_v1_[0-9a-f]{64}`), token("databricks_token", `dapi[0-9a-f]{32}(?:-[0-9])?`), token("databricks_token", `dose[0-9a-f]{32}`),
		token("heroku_api_key", `HRKU-AA[0-9A-Za-z_-]{50,}`), named("heroku_api_key", "heroku", uuid), token("flyio_token", `fo1_[A-Za-z0-9_-]{43}`), token("flyio_token", `fm[12][ar]?_[A-Za-z0-9+/]{60,}={0,3}`),
		token("cloudflare_key", `v1\.0-[0-9a-f]{24}-[0-9a-f]{146}`), named("cloudflare_key", "cloudflare", `[A-Za-z0-9_-]{37,40}`), token("alibaba_access_key", `LTAI[A-Za-z0-9]{17,21}`),
		token("tencent_secret_id", `AKID[A-Za-z0-9]{32}`), token("yandex_key", `AQVN[A-Za-z0-9_-]{35,38}`), token("yandex_token", `t1\.[A-Z0-9a-z_-]+=?=?\.[A-Z0-9a-z_-]{86}=?=?`), token("yandex_token", `y[0-3]_[A-Za-z0-9_-]{55}`),
		token("ibm_key", `ApiKey-[0-9a-f]{8}-[0-9a-f-]{27}`), token("oracle_auth_token", `ocid1\.credential\.[a-z0-9.]{30,}`), token("scaleway_key", `SCW[A-Z0-9]{17}`), token("linode_token", `lnd_[0-9a-f]{60,}`),
		token("vercel_token", `vcp_[A-Za-z0-9]{40,}`), token("supabase_key", `sbp_[0-9a-f]{40}`), token("supabase_key", `sb_secret_[A-Za-z0-9_-]{20,}`), token("neon_key", `napi_[a-z0-9]{40,}`),
		token("planetscale_token", `pscale_(?:tkn|oauth|pw)_[A-Za-z0-9_=.-]{32,}`), token("render_key", `rnd_[A-Za-z0-9]{28,}`), token("railway_token", `railway_[A-Za-z0-9]{30,}`), token("netlify_token", `nfp_[A-Za-z0-9]{36,}`),
		named("netlify_token", "netlify", `[A-Za-z0-9=_-]{40,46}`), token("vault_token", `hv[sbr]\.[A-Za-z0-9_-]{20,}`), token("terraform_token", `atlasv1\.[A-Za-z0-9_=-]{60,}`), token("consul_token", `consul_[0-9a-f-]{36}`),
		token("pulumi_token", `pul-[0-9a-f]{40}`), token("doppler_token", `dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9_.-]{40,}`), token("infisical_token", `st\.[0-9a-f]{24}\.[0-9a-f]{32}\.[0-9a-f]{32}`),
		token("onepassword_key", `A3-[A-Z0-9]{6}-[A-Z0-9]{6,11}-[A-Z0-9-]{17,23}`), token("onepassword_token", `ops_eyJ[A-Za-z0-9+/]{100,}={0,3}`), token("age_key", `AGE-SECRET-KEY-1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}`),
		named("bitwarden_token", "bws_access_token", `0\.[0-9a-f-]{36}\.[A-Za-z0-9]{30}:[A-Za-z0-9+/=]{20,}`),

		token("stripe_key", `(?:sk|rk)_(?:live|test|prod)_[A-Za-z0-9]{10,}`), token("stripe_webhook_secret", `whsec_[A-Za-z0-9+/=]{24,}`), token("square_token", `sq0[a-z]{3}-[A-Za-z0-9_-]{22,}`),
		token("square_token", `EAAA[A-Za-z0-9_-]{56,}`), token("paypal_token", `access_token\$(?:production|sandbox)\$[0-9a-z]{16}\$[0-9a-f]{32}`), token("adyen_key", `AQE[a-z][A-Za-z0-9+/=]{60,}-[A-Za-z0-9+/=]{20,}`),
		token("plaid_token", `access-(?:sandbox|development|production)-[0-9a-f]{8}-[0-9a-f-]{27}`), named("plaid_secret", "plaid", `[0-9a-z]{30}`), token("flutterwave_key", `FLWSECK(?:_TEST)?-[0-9A-Za-z]{12,}(?:-X)?`),
		token("razorpay_key", `rzp_(?:live|test)_[A-Za-z0-9]{14,}`), token("gocardless_token", `live_[A-Za-z0-9_=-]{40}`), token("shopify_token", `shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}`), token("shippo_token", `shippo_(?:live|test)_[0-9a-f]{40}`),
		token("easypost_key", `EZ[AT]K[A-Za-z0-9]{54}`), token("duffel_token", `duffel_(?:test|live)_[A-Za-z0-9_=-]{40,}`), token("coinbase_key", `organizations/[0-9a-f-]{36}/apiKeys/[0-9a-f-]{36}`), named("coinbase_key", "coinbase", `[A-Za-z0-9_-]{64}`),

		token("sendgrid_key", `SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{16,64}`), token("twilio_key", `SK[0-9a-f]{32}`), named("twilio_token", "twilio", `[0-9a-f]{32}`), token("mailgun_key", `key-[0-9a-f]{32}`),
		named("mailgun_key", "mailgun", `[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}`), named("mailchimp_key", "mailchimp", `[0-9a-f]{32}-us[0-9]{1,2}`), token("sendinblue_key", `xkeysib-[0-9a-f]{64}-[A-Za-z0-9]{16}`), token("sendinblue_key", `xsmtpsib-[0-9a-f]{64}-[A-Za-z0-9]{16}`),
		token("postmark_token", `PMAK-[0-9a-f]{24}-[0-9a-f]{34}`), named("resend_key", "resend", `re_[A-Za-z0-9]{8}_[A-Za-z0-9]{20,}`), token("intercom_token", `dG9rO[A-Za-z0-9+/=_-]{50,}`), named("messagebird_token", "message_?bird", `[A-Za-z0-9]{25}`),
		named("pagerduty_key", "pagerduty", `u\+[A-Za-z0-9_+-]{18}|[A-Za-z0-9_+-]{20}`), token("typeform_token", `tfp_[A-Za-z0-9_.=-]{40,}`), named("airtable_token", "airtable", `pat[A-Za-z0-9]{14}\.[0-9a-f]{64}|key[A-Za-z0-9]{14}`), token("notion_token", `ntn_[0-9]{11}[A-Za-z0-9]{35}`), token("notion_token", `secret_[A-Za-z0-9]{43}`),
		token("linear_key", `lin_(?:api|oauth)_[A-Za-z0-9]{40}`), token("figma_token", `figd_[A-Za-z0-9_-]{38,}`), token("hubspot_token", `pat-(?:na|eu)1-[0-9a-f]{8}-[0-9a-f-]{27}`), named("asana_token", "asana", `(?:[0-9]/[0-9]{16}:)?[0-9a-f]{32}`), token("clickup_token", `pk_[0-9]{6,10}_[A-Z0-9]{32}`),
		token("frameio_token", `fio-u-[A-Za-z0-9_=-]{64}`), token("readme_token", `rdme_[a-z0-9]{70}`), token("contentful_token", `CFPAT-[A-Za-z0-9_-]{40,}`), token("dropbox_token", `sl\.[A-Za-z0-9_=-]{100,}`), token("mapbox_token", `(?:sk|tk)\.eyJ[A-Za-z0-9_-]{40,}\.[A-Za-z0-9_-]{22}`),
		token("facebook_token", `EAA[MC][A-Za-z0-9]{80,}`), named("facebook_secret", "facebook", `[0-9a-f]{32}`), named("twitter_secret", "twitter", `[A-Za-z0-9]{45,50}`), token("twitter_bearer", `AAAAAAAAAAAAAAAAAAAAAA[A-Za-z0-9%]{70,}`), named("linkedin_secret", "linked_?in", `[A-Za-z0-9]{16}`),
		named("twitch_token", "twitch", `[0-9a-z]{30}`), named("algolia_key", "algolia", `[0-9a-f]{32}`), named("adafruit_key", "adafruit", `[A-Za-z0-9_-]{32}`), token("adobe_secret", `p8e-[A-Za-z0-9]{32}`),

		token("npm_token", `npm_[A-Za-z0-9]{30,}`), token("pypi_token", `pypi-[A-Za-z0-9_-]{50,}`), token("rubygems_key", `rubygems_[0-9a-f]{48}`), token("docker_token", `dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}`), token("clojars_token", `CLOJARS_[0-9a-z]{60}`),
		token("nuget_key", `oy2[a-z0-9]{43}`), token("artifactory_key", `AKCp[A-Za-z0-9]{69}`), token("artifactory_token", `cmVmd[A-Za-z0-9]{59}`), {name: "cargo_token", expr: `\bcio([A-Za-z0-9]{32})`, check: mixed}, token("octopus_key", `API-[A-Z0-9]{26}`), token("harness_key", `(?:pat|sat)\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}`),
		token("sonar_token", `sq[apu]_[0-9a-f]{40}`), token("snyk_token", `snyk_(?:uat|sat)\.[A-Za-z0-9._-]{30,}`), named("snyk_token", "snyk", uuid), token("sourcegraph_token", `sgp_(?:[0-9a-f]{16}_|local_)?[0-9a-f]{40}`), token("circleci_token", `CCIPAT_[A-Za-z0-9]{22}_[0-9a-f]{40}`), token("buildkite_token", `bkua_[0-9a-f]{40}`),
		token("jfrog_token", `eyJ2ZXIiOi[A-Za-z0-9_.-]{60,}`), named("travis_token", "travis", `[A-Za-z0-9]{22}`), named("codecov_token", "codecov", uuid), named("drone_token", "drone", `[A-Za-z0-9]{32}`),
		token("grafana_token", `gl(?:c|sa)_[A-Za-z0-9+/]{32,}(?:_[0-9a-fA-F]{8})?={0,3}`), token("newrelic_key", `NR(?:AK|JS|II|AL|RA)-[A-Za-z0-9-]{19,}`), named("datadog_key", "datadog|dd_?(?:api|app)_?key", `[0-9a-f]{32,40}`), token("dynatrace_token", `dt0[a-z][0-9]{2}\.[A-Z0-9]{24}\.[A-Z0-9]{64}`),
		token("sentry_token", `sntry[su]_[A-Za-z0-9+/=_]{40,}`), token("honeycomb_key", `hc[abi][io][ck]_[A-Za-z0-9]{50,}`), named("fastly_token", "fastly", `[A-Za-z0-9_=-]{32}`), named("okta_token", "okta", `00[A-Za-z0-9_=-]{40}`), token("postman_key", `PMAT-[A-Z0-9]{26}`), token("prefect_token", `pn[ub]_[A-Za-z0-9]{36}`),
		token("rapidapi_key", `rapidapi-[A-Za-z0-9]{40,}`), named("rapidapi_key", "rapidapi", `[A-Za-z0-9_-]{50}`), token("scalingo_token", `tk-us-[A-Za-z0-9_-]{48}`), token("confluent_secret", `cflt[A-Za-z0-9+/]{60}`), named("confluent_secret", "confluent", `[A-Za-z0-9+/]{64}`), token("clickhouse_key", `4b1d[A-Za-z0-9]{38}`),
		token("openshift_token", `sha256~[A-Za-z0-9_-]{43}`), token("tailscale_key", `tskey-[a-z]+-[A-Za-z0-9-]{16,}`), named("ngrok_key", "ngrok", `(?:ak_|cr_)?[A-Za-z0-9_]{27,49}`), token("defined_token", `dnkey-[A-Za-z0-9_=-]{26}-[A-Za-z0-9_=-]{52}`), token("settlemint_token", `sm_[aps]at_[A-Za-z0-9]{16}`), token("infracost_token", `ico-[A-Za-z0-9]{32}`),
		token("maxmind_key", `mmk_[A-Za-z0-9]{29}`), token("launchdarkly_key", `(?:sdk|api)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), token("kubernetes_token", `kubeconfig-[a-z0-9-]+:[a-z0-9]{40,}`), named("mattermost_token", "mattermost", `[0-9a-z]{26}`), named("zendesk_key", "zendesk", `[A-Za-z0-9]{40}`),

		{name: "url_password", expr: `:[/\\][/\\]{1,14}[^/\s:@"'<>\\]*:([^/\s"'<>@]+)@[A-Za-z0-9\[_$%{-]`, ahead: noAt, check: notPlaceholder, reach: urlReach},
		{name: "credentials", expr: `\b(?i:bearer)` + blank + `{1,4}([A-Za-z0-9._~+/=-]{16,})`, check: mixed, reach: 16 << 10},
		{name: "credentials", expr: `(?i:authorization)` + sep + `(?:` + quote + `)?(?i:basic)` + blank + `{1,4}([^\s"'\\]{8,})`, reach: 4096},
		{name: "credentials", expr: `\b(?i:basic)` + blank + `{1,4}([A-Za-z0-9+/]{12,}={0,2})`, check: basicShape, reach: 4096},
		{name: "credentials", expr: `(?i:authorization)` + sep + `(?:` + quote + `)?(?i:token|apikey|api-key|digest|aws4-hmac-sha256)\s+([^\s"'\\]{16,}[^"'\n\\]*)`},
		{name: "api_key_header", expr: `(?i:x-(?:api-?key|auth-token|access-token|goog-api-key|vault-token|amz-security-token|csrf-token|session-token|auth-key|secret))` + sep + `(?:` + quote + `)?([A-Za-z0-9._~+/=-]{8,})`, check: mixed},
		{name: "cookie", expr: `\b(?i:cookie)["'\\]{0,6}\s{0,3}:\s{0,3}(?:` + quote + `)?([A-Za-z0-9_.-]{1,64}=[^\s"';\\]{8,}[^"'\r\n\\]*)`, reach: 4096, entropy: 3},
		{name: "command_password", expr: `\bcurl\s[^\n|]*?(?:-u|--user)[ =]["'\\]{0,4}[^\s:"'\\$]{1,64}:([^\s"'\\$]{3,})`, check: notPlaceholder},
		{name: "command_password", expr: `--(?:password|passwd|pass|passphrase|token|secret|api-key|client-secret)(?:=|\s{1,2})["'\\]{0,4}([^\s"'\\$<>\[\](){}|,-][^\s"'\\<>|,()]{2,})`, check: optionValue},
		{name: "password", expr: strong + after + quote + `([^"'\x60\s\\]{3,})[\\]{0,7}["'\x60]`, check: quotedValue, ahead: notKey},
		{name: "password", expr: strong + `=([^\s"'\x60\\;&,(){}\[\]<>|$]{4,})(?:["'\s;&\\]|\z)`, check: bareValue, ahead: notKey},
		{name: "password", expr: strong + `:\s{0,3}([^\s"'\x60\\;&,(){}\[\]<>|$]{4,})(?:\s*(?:\n|\\+n)|\s*["'#]|\s*\z)`, check: bareValue, ahead: notKey},
		{name: "password", expr: weak + after + quote + `([A-Za-z0-9._~+/=-]{16,})[\\]{0,7}["'\x60]`, check: random, ahead: notKey},
		{name: "password", expr: weak + `(?:=|:\s{1,3})([A-Za-z0-9_~+/=-]{20,})(?:["'\s;&\\]|\z)`, check: random, ahead: notKey},
		{name: "password", expr: `(?i:passw(?:or)?d|secret|token|api_?key)["'\\]{1,6}\s{0,4},\s{0,4}["'\\]{1,6}(?i:value)["'\\]{1,6}\s{0,4}:\s{0,4}(?:\{\s{0,4}["'\\]{1,6}(?i:string_?value)["'\\]{1,6}\s{0,4}:\s{0,4})?["'\\]{1,6}([^"'\\]{3,})`, check: quotedValue, ahead: notKey},
	}
}

// urlReach is how long a URL is in which a password is looked for.
const urlReach = 1024

const (
	// strong are the ends of keys whose values are secrets in any shape.
	strong = `(?i:passw(?:or)?d|passphrase|client_?secret|secret_?key|api[_-]?key|pwd)`
	// weak are those that have other values, too.
	weak = `(?i:token|secret|access_?key|private_?key|auth_?key|credentials?)`
)
