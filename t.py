import sys; sys.path.insert(0,'tests')
from robustness import cases
import importlib
import time
for m in sys.argv[1:]:
    b=importlib.import_module("robustness."+m)
    t=time.time(); cs=list(b.cases()); print(len(cs), time.time()-t)
    o=cases.check_all(cs); print(time.time()-t)
    bad=[x for x in o if not x.good]
    print(len(bad),"bad")
    seen={}
    for x in bad:
        seen.setdefault((x.case.name, x.said[:40]),[]).append(x)
    for k,v in seen.items(): print(len(v), v[0].case.area,'|',k[0],'|',v[0].said[:230])
