#!/bin/sh
# Makes a CA, a certificate of the site and a token for Prometheus in a folder, unless they are there.
set -eu
cd "$1"
if [ -s tokens ]; then exit 0; fi
name=sluice.localhost
openssl req -x509 -newkey rsa:2048 -nodes -days 3650 -keyout ca.key -out ca.crt -subj '/CN=Sluice for trying things'
openssl req -newkey rsa:2048 -nodes -keyout server.key -out server.csr -subj "/CN=$name"
printf 'subjectAltName=DNS:%s,IP:127.0.0.1\n' "$name" >extensions
openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 825 -extfile extensions -out server.crt
rm -f server.csr extensions
chmod 0644 ca.crt server.crt
chmod 0600 ca.key server.key

# What `sluice token create prometheus` does, without sluice.
umask 077
token="sluice_$(openssl rand -base64 32 | tr '+/' '-_' | tr -d '=\n')"
hash=$(printf %s "$token" | openssl dgst -sha256 -r | cut -d ' ' -f 1)
printf %s "$token" >prometheus-token
printf 'prometheus sha256:%s - -\n' "$hash" >made
if [ "$(id -u)" = 0 ]; then
  chown 65534 prometheus-token # the user of Prometheus's image
  chown 65532 made             # the user of the gateways
fi
mv made tokens
