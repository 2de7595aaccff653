# SPDX-License-Identifier: GPL-3.0-or-later
# Each target does its own set-up. `make` alone lists them.
.PHONY: help demo rig test test-full lint unit molecule chaos-deploy pve-contract gpu-check bench docs options lock patch-new clean
PATH := $(CURDIR)/.venv/bin:$(PATH)

help: ## this list
	@sed -n 's/^\([a-z -]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 20

demo: ## a simulated Proxmox host, one deploy through it, a model that answers
	@tools/demo

rig: ## only the simulated host; then: ansible-playbook deploy.yml
	@tools/setup system
	@tools/setup python
	@molecule/rig/rig up

test: ## lint, unit tests and Molecule; ends with one line that counts
	@tools/setup system
	@tools/setup dev
	@python tools/test.py lint unit molecule

test-full: ## the same, with what takes longer: two hosts with three guests, each role by itself, the driver from packages
	@tools/setup system
	@tools/setup dev
	@tools/setup browser
	@python tools/test.py lint unit molecule more

lint unit molecule: ## one part of the tests
	@tools/setup system
	@tools/setup dev
	@python tools/test.py $@

chaos-deploy: ## a first deploy, killed at each of 20 moments (MOMENTS, SEED); the next run must complete it
	@tools/setup system
	@tools/setup python
	@python tools/chaos.py deploy --moments $(or $(MOMENTS),20) --seed $(or $(SEED),1)

pve-contract: ## the contract with Proxmox VE against a node of yours (NODE=my-node.yml); writes only where that names vmids
	@tools/setup dev
	@python tools/pve_contract.py "$(NODE)"

gpu-check: ## the GPU code on this machine's own NVIDIA GPUs, as JSON (VENV=/path: the NCCL of that environment's torch too)
	@python3 tools/gpu_check.py $(if $(VENV),--venv "$(VENV)")

bench: ## speed as ratios: the audit of an environment (VENV; else one is made, a download of 1 GB) against openssl
	@tools/setup dev
	@python tools/bench.py $(if $(VENV),--venv "$(VENV)")

docs: ## docs/findings.md from the catalogue, docs/breakages.md from the last run of the scenario repair
	@tools/setup python
	@python tools/findings_doc.py > docs/findings.md
	@[ ! -e build/breakages.json ] || python tools/breakages.py page

options: ## the tables of engines' options, asked of the engines in environments of the profiles' locks (a download of 5 GB each; PROFILE=name for one)
	@tools/setup dev
	@python tools/engine_options.py write $(PROFILE)

lock: ## requirements*.lock from requirements*.in; with PROFILE=name the lock of that profile (its name, or its folder)
	@tools/setup dev
	@if [ -n "$(PROFILE)" ]; then exec python tools/lock.py "$(PROFILE)"; fi; for name in requirements requirements-dev; do \
	  uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate $$name.in -o $$name.lock; \
	done

patch-new: ## a patch folder from edited files of an installed package (ID=, WHEEL= of the installed version, FILES=, INTO= your patches)
	@tools/setup python
	@python tools/patch_new.py "$(ID)" --wheel "$(WHEEL)" $(if $(INTO),--into "$(INTO)") $(FILES)

clean: ## take away everything but the cache and .venv
	@tools/clean
