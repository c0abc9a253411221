# Two images:
#
#   docker build --target earshot -t earshot .             the sidecar alone, for a ClickHouse of your own
#   docker build --target earshot-store -t earshot-store . the same with the embedded store
#
# GO_IMAGE, IMAGE and STORE_IMAGE are the images that they are made from: --build-arg GO_IMAGE=golang@sha256:…

ARG GO_IMAGE=golang:1.26-bookworm
ARG IMAGE=gcr.io/distroless/static-debian12:nonroot
ARG STORE_IMAGE=gcr.io/distroless/cc-debian12:nonroot

FROM ${GO_IMAGE} AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /out/earshot ./cmd/earshot \
 && CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o /out/earshot-store ./cmd/earshot-store \
 && mkdir -m 0700 /out/data

# The engine's library is fetched with npm and checked against its pinned hash.
FROM build AS engine
RUN apt-get update && apt-get install -y --no-install-recommends npm && rm -rf /var/lib/apt/lists/*
ENV XDG_CACHE_HOME=/cache
RUN go run ./cmd/earshot-store --fetch

FROM ${IMAGE} AS earshot
COPY --from=build /out/earshot /usr/local/bin/earshot
COPY --from=build --chown=65532:65532 /out/data /data
USER 65532:65532
VOLUME /data
EXPOSE 9464
ENTRYPOINT ["/usr/local/bin/earshot"]
CMD ["run", "-c", "/etc/earshot/earshot.yaml"]

# The engine is a glibc build.
FROM ${STORE_IMAGE} AS earshot-store
COPY --from=build /out/earshot /out/earshot-store /usr/local/bin/
COPY --from=engine /cache /cache
COPY --from=build --chown=65532:65532 /out/data /data
ENV XDG_CACHE_HOME=/cache
USER 65532:65532
VOLUME /data
EXPOSE 9464
ENTRYPOINT ["/usr/local/bin/earshot"]
CMD ["run", "-c", "/etc/earshot/earshot.yaml"]
